//! The reflection of a service with the option `reflect`: a type with its methods, each with the
//! conversions of its messages to JSON and back. Types that have no form in JSON are errors at
//! their place in the trait.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::parse::{Method, Service};

/// The type with the reflection.
pub(super) fn reflection(service: &Service) -> TokenStream {
    let Service {
        krate,
        visibility,
        name,
        methods,
        ..
    } = service;
    let (reflection, service_name) = (name_of(service), name.to_string());
    let doc = format!("The reflection of [`{name}`]: its methods, and their messages as JSON.");
    let methods = methods.iter().map(|it| method(krate, it));
    quote! {
        #[doc = #doc]
        #[derive(Debug)]
        #visibility enum #reflection {}

        impl #krate::reflect::Reflected for #reflection {
            const NAME: &'static str = #service_name;
            const METHODS: &'static [#krate::reflect::MethodReflection] = &[#(#methods),*];
        }
    }
}

/// The constant of the glue for futures that leads a server to the reflection.
pub(super) fn facts(service: &Service) -> TokenStream {
    let (krate, reflection) = (&service.krate, name_of(service));
    quote! {
        const FACTS: ::core::option::Option<#krate::core::Facts> =
            ::core::option::Option::Some(<#reflection as #krate::reflect::Reflected>::SERVICE);
    }
}

/// The statement that registers the reflection with an endpoint of the poll API.
pub(super) fn registration(service: &Service) -> TokenStream {
    let (krate, reflection) = (&service.krate, name_of(service));
    quote! {
        rpc.add_facts(<#reflection as #krate::reflect::Reflected>::SERVICE);
    }
}

fn name_of(service: &Service) -> syn::Ident {
    format_ident!("{}Reflection", service.name)
}

fn method(krate: &syn::Path, method: &Method) -> TokenStream {
    let Method {
        marker,
        codec,
        request,
        output,
        ..
    } = method;
    let request = conversion(krate, codec, request);
    let value = conversion(krate, codec, &output.value);
    let error = match &output.error {
        None => quote!(::core::option::Option::None),
        Some(error) => {
            let error = conversion(krate, codec, error);
            quote!(::core::option::Option::Some(#error))
        }
    };
    quote! {
        #krate::reflect::MethodReflection::new::<#marker>(#request, #value, #error)
    }
}

/// The conversions of a type. The compiler reports a type without them at its place in the trait.
fn conversion(krate: &syn::Path, codec: &Type, it: &Type) -> TokenStream {
    quote_spanned!(it.span()=> #krate::reflect::Conversion::of::<#codec, #it>())
}
