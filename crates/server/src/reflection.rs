//! The answers to questions about the server's methods (rule C16), as bytes. The conversions run
//! code of the services' messages; if it panics, the answer says so.

mod client;
mod converter;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use dunlin_service::reflect::{MethodReflection, Returned, ServiceReflection, description};
use dunlin_wire::{
    DESCRIBE, ErrorCode, JsonAnswer, JsonQuestion, MessageAnswer, MessageQuestion, ReqType,
    TO_JSON, TO_MESSAGE,
};

use crate::error::ServeError;
use crate::thread::Vitals;

pub use client::{ReflectError, Reflector};
pub(crate) use converter::Converter;

const PANICKED: &str = "the code that converts this message panicked";

/// The services of a server.
#[derive(Debug)]
pub(crate) struct Reflection {
    /// The services by their names. `None`: the service has no reflection.
    services: BTreeMap<&'static str, Option<&'static ServiceReflection>>,
    /// Their description, once a client has asked for it.
    description: OnceLock<String>,
}

impl Reflection {
    /// The services of these threads, which all have the same ones.
    pub(crate) fn of(threads: &[Vitals]) -> Result<Self, ServeError> {
        let names = threads.iter().flat_map(|thread| &thread.services);
        let mut services: BTreeMap<_, _> = names.map(|name| (*name, None)).collect();
        let facts = threads.iter().flat_map(|thread| &thread.facts);
        for service in facts.filter_map(|facts| facts.downcast_ref::<ServiceReflection>()) {
            if let Some(Some(other)) = services.insert(service.name(), Some(service))
                && !are_same(other, service)
            {
                return Err(ServeError::SameName(service.name()));
            }
        }
        let description = OnceLock::new();
        Ok(Self {
            services,
            description,
        })
    }

    /// The answer to a question of this type.
    fn answer(&self, question: ReqType, data: &[u8]) -> Result<Vec<u8>, ErrorCode> {
        match question {
            DESCRIBE => self.describe(),
            TO_MESSAGE => MessageQuestion::decode(data).map(|it| self.to_message(&it)),
            TO_JSON => JsonQuestion::decode(data).map(|it| self.to_json(&it)),
            _ => None,
        }
        .ok_or(ErrorCode::HANDLER_FAILED)
    }

    /// The description of the services. `None`: the code of a message panicked.
    fn describe(&self) -> Option<Vec<u8>> {
        let describe = || {
            let json = self.description.get_or_init(|| description(&self.services));
            json.clone().into_bytes()
        };
        catch_unwind(AssertUnwindSafe(describe)).ok()
    }

    /// Turns an argument into a message.
    fn to_message(&self, question: &MessageQuestion<'_>) -> Vec<u8> {
        let method = match self.by_name(question.method) {
            Ok(method) => method,
            Err(reason) => return encoded(&MessageAnswer::NoSuchMethod(&reason)),
        };
        let converted = catch_unwind(AssertUnwindSafe(|| method.message(question.json)));
        let converted = converted.map(|it| it.map_err(|misfit| misfit.to_string()));
        match converted.unwrap_or_else(|_| Err(PANICKED.to_owned())) {
            Ok(bytes) => encoded(&MessageAnswer::Message {
                number: method.number(),
                one_way: method.is_one_way(),
                bytes: &bytes,
            }),
            Err(misfit) => encoded(&MessageAnswer::Misfit(&misfit)),
        }
    }

    /// Turns a response into JSON.
    fn to_json(&self, question: &JsonQuestion<'_>) -> Vec<u8> {
        let method = self.by_number(question.number);
        let returned = |it: &MethodReflection| it.returned(question.response);
        let converted = method.map(|it| catch_unwind(AssertUnwindSafe(|| returned(it))));
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
        let mut bytes = vec![0; answer.size()];
        answer.encode(&mut bytes);
        bytes
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
            let option = "its trait lacks the option `reflect`";
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

/// Whether two threads have reflected the same service. Each thread has all services, and its
/// methods have different numbers.
fn are_same(one: &ServiceReflection, other: &ServiceReflection) -> bool {
    let numbers = |it: &ServiceReflection| {
        let methods = it.methods().iter();
        methods.map(MethodReflection::number).collect::<Vec<_>>()
    };
    numbers(one) == numbers(other)
}

fn encoded(answer: &MessageAnswer<'_>) -> Vec<u8> {
    let mut bytes = vec![0; answer.size()];
    answer.encode(&mut bytes);
    bytes
}
