//! The answers to questions about the server's methods (rule C16), which its own endpoint gives.
//! The conversions run code of the services' messages, on that endpoint's thread; a panic in it is
//! an answer, not the end of the thread.

mod client;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_core::{Cx, Refuse, Request};
use dunlin_service::reflect::{MethodReflection, Returned, ServiceReflection, description};
use dunlin_wire::{ErrorCode, JsonAnswer, JsonQuestion, MessageAnswer, MessageQuestion};

use crate::thread::Vitals;

pub use client::{ReflectError, Reflector};

const PANICKED: &str = "the code that converts this message panicked";

/// The services of a server.
#[derive(Debug)]
pub(crate) struct Reflection {
    /// The services by their names. `None`: the service has no reflection.
    services: BTreeMap<&'static str, Option<&'static ServiceReflection>>,
}

impl Reflection {
    /// The services of these threads, which all have the same ones.
    pub(crate) fn of(threads: &[Vitals]) -> Self {
        let names = threads.iter().flat_map(|thread| &thread.services);
        let mut services: BTreeMap<_, _> = names.map(|name| (*name, None)).collect();
        let facts = threads.iter().flat_map(|thread| &thread.facts);
        for service in facts.filter_map(|facts| facts.downcast_ref::<ServiceReflection>()) {
            services.insert(service.name(), Some(service));
        }
        Self { services }
    }

    /// Describes the services.
    pub(crate) fn describe(&self, request: Request<'_>, cx: &mut Cx<'_>) {
        match catch_unwind(|| description(&self.services)) {
            Ok(json) => request.reply_bytes(cx, json.as_bytes()),
            Err(_) => request.reject(cx, ErrorCode::HANDLER_FAILED),
        }
    }

    /// Turns an argument into a message.
    pub(crate) fn to_message(&self, request: Request<'_>, cx: &mut Cx<'_>) {
        let Some(MessageQuestion { method, json }) = MessageQuestion::decode(request.data()) else {
            return request.refuse(cx, ErrorCode::UNDECODABLE);
        };
        let method = match self.by_name(method) {
            Ok(method) => method,
            Err(reason) => return reply(request, cx, &MessageAnswer::NoSuchMethod(&reason)),
        };
        let converted = catch_unwind(AssertUnwindSafe(|| method.message(json)));
        let converted = converted.map(|it| it.map_err(|misfit| misfit.to_string()));
        match converted.unwrap_or_else(|_| Err(PANICKED.to_owned())) {
            Ok(bytes) => {
                let message = MessageAnswer::Message {
                    number: method.number(),
                    one_way: method.is_one_way(),
                    bytes: &bytes,
                };
                reply(request, cx, &message);
            }
            Err(misfit) => reply(request, cx, &MessageAnswer::Misfit(&misfit)),
        }
    }

    /// Turns a response into JSON.
    pub(crate) fn to_json(&self, request: Request<'_>, cx: &mut Cx<'_>) {
        let Some(JsonQuestion { number, response }) = JsonQuestion::decode(request.data()) else {
            return request.refuse(cx, ErrorCode::UNDECODABLE);
        };
        let method = self.by_number(number);
        let converted = method.map(|it| catch_unwind(AssertUnwindSafe(|| it.returned(response))));
        let reason;
        let answer = match &converted {
            None => JsonAnswer::NoSuchMethod("no method has this number"),
            Some(Ok(Ok(Returned::Value(json)))) => JsonAnswer::Value(json),
            Some(Ok(Ok(Returned::Error(json)))) => JsonAnswer::Error(json),
            Some(Ok(Err(error))) => {
                reason = error.to_string();
                JsonAnswer::BadResponse(&reason)
            }
            Some(Err(_)) => JsonAnswer::BadResponse(PANICKED),
        };
        request.reply(cx, answer.size(), |out| answer.encode(out));
    }

    fn by_number(&self, number: u16) -> Option<&'static MethodReflection> {
        let methods = self.services.values().flatten();
        let mut methods = methods.flat_map(|service| service.methods());
        methods.find(|method| method.number() == number)
    }

    /// The method with this name; or why there is none, with the names that there are.
    fn by_name(&self, name: &str) -> Result<&'static MethodReflection, String> {
        let service = name.split_once('.').map_or(name, |(service, _)| service);
        let Some(service) = self.services.get(service) else {
            let all: Vec<_> = self.services.keys().copied().collect();
            return Err(format!(
                "there is no service `{service}`; {}",
                are("services", &all)
            ));
        };
        let Some(service) = service else {
            let option = "its trait has not the option `reflect`";
            return Err(format!("`{name}` cannot be called by JSON: {option}"));
        };
        let found = service
            .methods()
            .iter()
            .find(|method| method.name() == name);
        found.ok_or_else(|| {
            let all: Vec<_> = service
                .methods()
                .iter()
                .map(MethodReflection::name)
                .collect();
            format!("there is no method `{name}`; {}", are("methods", &all))
        })
    }
}

fn are(what: &str, names: &[&str]) -> String {
    match names {
        [] => format!("the server has no {what} with a name"),
        names => format!("the {what} are {}", names.join(", ")),
    }
}

fn reply(request: Request<'_>, cx: &mut Cx<'_>, answer: &MessageAnswer<'_>) {
    request.reply(cx, answer.size(), |out| answer.encode(out));
}
