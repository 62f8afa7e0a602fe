//! Writes the code of a service: marker types, two server traits, their glue, and two clients.
//! For the option `send`, `expand/send.rs` writes a third server trait; for `reflect`,
//! `expand/reflect.rs` writes the reflection.

mod reflect;
mod send;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use crate::parse::{Method, Output, Service};

/// Everything that the attribute makes.
pub(crate) fn code(service: &Service) -> TokenStream {
    let markers = service.methods.iter().map(|method| marker(service, method));
    let asynchronous = async_server(service);
    let send = service.is_send.then(|| send::server(service));
    let reflection = service.is_reflected.then(|| reflect::reflection(service));
    let poll = poll_server(service);
    let client = client(service);
    let stub = stub(service);
    quote! {
        #(#markers)*
        #asynchronous
        #send
        #reflection
        #poll
        #client
        #stub
    }
}

fn marker(service: &Service, method: &Method) -> TokenStream {
    let Service {
        krate,
        visibility,
        name,
        ..
    } = service;
    let Method {
        marker,
        number,
        one_way,
        idempotent,
        codec,
        request,
        ..
    } = method;
    let full_name = format!("{name}.{}", method.name.unraw());
    let Output { value, error } = &method.output;
    let outcome = match error {
        None => quote!(#krate::Plain<#value>),
        Some(error) => quote!(#krate::Fallible<#value, #error>),
    };
    let doc = format!("The method `{full_name}`, number {number}.");
    quote! {
        #[doc = #doc]
        #[derive(Debug)]
        #visibility enum #marker {}

        impl #krate::Method for #marker {
            const NUMBER: u16 = #number;
            const NAME: &'static str = #full_name;
            const ONE_WAY: bool = #one_way;
            const IDEMPOTENT: bool = #idempotent;
            type Codec = #codec;
            type Request = #request;
            type Outcome = #outcome;
        }
    }
}

fn async_server(service: &Service) -> TokenStream {
    let Service {
        krate,
        docs,
        visibility,
        name,
        methods,
        ..
    } = service;
    let server = format_ident!("{name}Server");
    let doc = format!("Serves an implementation of [`{name}`]; pass it to `Local::serve_typed`.");
    let functions = methods.iter().map(|method| {
        let Method {
            docs,
            name,
            argument,
            ..
        } = method;
        let marker = &method.marker;
        quote! {
            #(#docs)*
            fn #name<'a>(
                &'a self,
                #argument: #krate::ViewOf<'a, #marker>,
                context: #krate::Context<'a>,
            ) -> impl ::core::future::Future<Output = #krate::ValueOf<#marker>>;
        }
    });
    let arms = methods.iter().map(|method| answer_arm(service, method));
    let answering = answering(service, &quote!(::std::rc::Rc), arms);
    quote! {
        #(#docs)*
        #visibility trait #name {
            #(#functions)*
        }

        #[doc = #doc]
        #[derive(Debug)]
        #visibility struct #server<S>(pub S);

        impl<S: #name + 'static, R: #krate::IncomingRequest + 'static> #krate::AsyncService<R>
            for #server<S>
        {
            #answering
        }
    }
}

/// The items of a trait of the glue for futures: name and methods of the service, and the function
/// that answers a request with the arm of its number. `pointer` holds the service.
fn answering(
    service: &Service,
    pointer: &TokenStream,
    arms: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    let Service {
        krate,
        name,
        methods,
        ..
    } = service;
    let service_name = name.to_string();
    let numbers = methods.iter().map(|method| method.number);
    let markers = methods.iter().map(|method| &method.marker);
    let facts = service.is_reflected.then(|| reflect::facts(service));
    quote! {
        const NAME: &'static str = #service_name;
        const METHODS: &'static [u16] = &[#(#numbers),*];
        const NAMES: &'static [&'static str] = &[#(<#markers as #krate::Method>::NAME),*];
        #facts

        async fn answer(
            self: #pointer<Self>,
            request: R,
        ) -> ::core::result::Result<(), #krate::Error> {
            match request.req_type().0 & !#krate::META {
                #(#arms)*
                _ => request.refuse(#krate::Refusal::UnknownMethod),
            }
        }
    }
}

/// The match arm for the number of one method, in the glue for futures.
fn answer_arm(service: &Service, method: &Method) -> TokenStream {
    let Service { krate, name, .. } = service;
    let Method {
        name: function,
        number,
        ..
    } = method;
    let marker = &method.marker;
    quote! {
        #number => {
            let value = match #krate::open::<#marker, R>(&request) {
                Ok((message, context)) => {
                    Some(#name::#function(&self.0, message, context).await)
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

fn poll_server(service: &Service) -> TokenStream {
    let Service {
        krate,
        visibility,
        name,
        methods,
        ..
    } = service;
    let poll = format_ident!("{name}Poll");
    let service_name = name.to_string();
    let doc = format!("[`{name}`] as handlers of the poll API, for the state of an endpoint.");
    let facts = service.is_reflected.then(|| reflect::registration(service));
    let functions = methods.iter().map(|method| {
        let Method {
            docs,
            name,
            argument,
            ..
        } = method;
        let marker = &method.marker;
        quote! {
            #(#docs)*
            fn #name(
                &mut self,
                #argument: #krate::ViewOf<'_, #marker>,
                cx: &mut #krate::core::Cx<'_>,
                context: #krate::Context<'_>,
            ) -> #krate::ValueOf<#marker>;
        }
    });
    let registered = methods.iter().map(|method| {
        let function = &method.name;
        let marker = &method.marker;
        quote! {
            #krate::poll::register::<#marker, R, Self>(rpc, |app, request, cx| {
                #krate::poll::serve::<#marker, Self>(app, request, cx, Self::#function);
            });
        }
    });
    quote! {
        #[doc = #doc]
        #visibility trait #poll {
            #(#functions)*

            /// Registers all methods with an endpoint.
            fn register<R: #krate::core::Register<Self>>(rpc: &mut R)
            where
                Self: Sized,
            {
                rpc.add_service(#service_name);
                #facts
                #(#registered)*
            }
        }
    }
}

fn client(service: &Service) -> TokenStream {
    let Service {
        krate,
        visibility,
        name,
        methods,
        ..
    } = service;
    let client = format_ident!("{name}Client");
    let doc = format!("Calls [`{name}`] from futures: on a session, or over a channel.");
    let functions = methods.iter().map(|method| function(krate, method));
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        #visibility struct #client<L: #krate::Carrier> {
            link: L,
            at: L::At,
        }

        impl<L: #krate::Carrier<At = #krate::core::Session>> #client<L> {
            /// A client on this session.
            pub const fn new(link: L, session: #krate::core::Session) -> Self {
                Self { link, at: session }
            }
        }

        impl<L: #krate::Carrier<At = ()>> #client<L> {
            /// A client over this channel.
            pub const fn over(channel: L) -> Self {
                Self { link: channel, at: () }
            }
        }

        impl<L: #krate::Carrier> #client<L> {
            #(#functions)*
        }
    }
}

/// A client's function, which makes a call, or sends a notification.
fn function(krate: &syn::Path, method: &Method) -> TokenStream {
    let Method {
        docs,
        name,
        argument,
        request,
        one_way,
        ..
    } = method;
    let marker = &method.marker;
    if *one_way {
        let notice = format_ident!("{name}_notice");
        let doc =
            format!("Prepares [`Self::{name}`] with options, such as metadata; `send` sends it.");
        return quote! {
            #(#docs)*
            ///
            /// # Errors
            /// If it is not issued.
            pub fn #name(
                &self,
                #argument: &#request,
            ) -> ::core::result::Result<
                (),
                #krate::Failure<
                    ::core::convert::Infallible,
                    <L as #krate::Carrier>::Error,
                >,
            > {
                #krate::Carrier::typed_notify::<#marker>(&self.link, self.at, #argument)
            }

            #[doc = #doc]
            pub fn #notice<'a>(
                &'a self,
                #argument: &'a #request,
            ) -> <L as #krate::Carrier>::Notice<'a, #marker> {
                #krate::Carrier::typed_notice::<#marker>(&self.link, self.at, #argument)
            }
        };
    }
    quote! {
        #(#docs)*
        pub fn #name<'a>(
            &'a self,
            #argument: &'a #request,
        ) -> <L as #krate::Carrier>::Typed<'a, #marker> {
            #krate::Carrier::typed::<#marker>(&self.link, self.at, #argument)
        }
    }
}

fn stub(service: &Service) -> TokenStream {
    let Service {
        krate,
        visibility,
        name,
        methods,
        ..
    } = service;
    let stub = format_ident!("{name}Stub");
    let doc = format!("Calls [`{name}`] on a session, by the poll API.");
    let calls = methods.iter().map(|method| stub_calls(service, method));
    let responses = methods.iter().map(|method| stub_response(service, method));
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #stub(pub #krate::core::Session);

        impl #stub {
            #(#calls)*
            #(#responses)*
        }
    }
}

/// The functions of a stub that issue calls of one method.
fn stub_calls(service: &Service, method: &Method) -> TokenStream {
    let krate = &service.krate;
    let Method {
        docs,
        name,
        argument,
        request,
        ..
    } = method;
    let marker = &method.marker;
    let with = format_ident!("{name}_with");
    let with_doc =
        format!("Like `{name}`, with options, and the msgbufs that an earlier call gave back.");
    quote! {
        #(#docs)*
        ///
        /// # Errors
        /// If it is not issued.
        pub fn #name(
            &self,
            cx: &mut #krate::core::Cx<'_>,
            #argument: &#request,
            tag: #krate::core::Tag,
        ) -> ::core::result::Result<#krate::core::CallId, #krate::NotSent> {
            let options = #krate::core::CallOptions::default();
            #krate::poll::call::<#marker>(cx, self.0, #argument, tag, options)
        }

        #[doc = #with_doc]
        ///
        /// # Errors
        /// If it is not issued.
        #[inline]
        pub fn #with(
            &self,
            cx: &mut #krate::core::Cx<'_>,
            #argument: &#request,
            bufs: [#krate::core::MsgBuf; 2],
            tag: #krate::core::Tag,
            options: #krate::core::CallOptions,
        ) -> ::core::result::Result<#krate::core::CallId, #krate::NotSent> {
            #krate::poll::call_with_bufs::<#marker>(cx, self.0, #argument, bufs, tag, options)
        }
    }
}

/// The function of a stub that reads completions of one method.
fn stub_response(service: &Service, method: &Method) -> TokenStream {
    let krate = &service.krate;
    let marker = &method.marker;
    let name = format_ident!("{}_response", method.name);
    let doc = format!("Reads the completion of `{}`.", method.name);
    quote! {
        #[doc = #doc]
        ///
        /// # Errors
        /// If it has no value.
        #[inline]
        pub fn #name(done: &#krate::core::Done) -> #krate::poll::Response<'_, #marker> {
            #krate::poll::response::<#marker>(done)
        }
    }
}
