//! The server trait of a service with the option `send`: its methods own their messages, and their
//! futures are `Send`, so any thread may run them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::parse::{Method, Service};

/// The trait, its implementation for an `Arc`, and the glue.
pub(super) fn server(service: &Service) -> TokenStream {
    let Service {
        krate,
        docs,
        visibility,
        name,
        methods,
        ..
    } = service;
    let send = format_ident!("{name}Send");
    let server = format_ident!("{name}SendServer");
    let doc = format!("Serves an implementation of [`{send}`]; pass it to `Offload`.");
    let declared = methods.iter().map(|method| declaration(krate, method));
    let shared = methods.iter().map(|method| {
        let signature = signature(krate, method);
        let (function, argument) = (&method.name, &method.argument);
        quote! {
            #signature {
                S::#function(self, #argument, context)
            }
        }
    });
    let arms = methods.iter().map(|method| arm(krate, &send, method));
    let answering = super::answering(service, &quote!(::std::sync::Arc), arms);
    quote! {
        #(#docs)*
        ///
        /// The futures of these methods are `Send`, so any thread may run them.
        #visibility trait #send: ::core::marker::Send + ::core::marker::Sync {
            #(#declared)*
        }

        impl<S: #send> #send for ::std::sync::Arc<S> {
            #(#shared)*
        }

        #[doc = #doc]
        #[derive(Clone, Debug)]
        #visibility struct #server<S>(pub S);

        impl<S, R> #krate::SendService<R> for #server<S>
        where
            S: #send + 'static,
            R: #krate::IncomingRequest
                + ::core::marker::Send
                + ::core::marker::Sync
                + 'static,
        {
            #answering
        }
    }
}

fn declaration(krate: &syn::Path, method: &Method) -> TokenStream {
    let (docs, signature) = (&method.docs, signature(krate, method));
    quote! {
        #(#docs)*
        #signature;
    }
}

fn signature(krate: &syn::Path, method: &Method) -> TokenStream {
    let Method {
        name,
        argument,
        request,
        marker,
        ..
    } = method;
    quote! {
        fn #name<'a>(
            &'a self,
            #argument: #request,
            context: #krate::Context<'a>,
        ) -> impl ::core::future::Future<Output = #krate::ValueOf<#marker>>
            + ::core::marker::Send
    }
}

/// The match arm of one method number.
fn arm(krate: &syn::Path, send: &syn::Ident, method: &Method) -> TokenStream {
    let Method {
        name: function,
        number,
        marker,
        ..
    } = method;
    quote! {
        #number => {
            let value = match #krate::open_owned::<#marker, R>(&request) {
                Ok((message, context)) => {
                    Some(#send::#function(&self.0, message, context).await)
                }
                Err(_) => None,
            };
            match value {
                Some(value) => #krate::answer::<#marker, R>(request, &value),
                None => request.refuse(#krate::Refusal::Undecodable),
            }
        }
    }
}
