//! Traits that are not services, with the compiler's errors; and services in all their forms.

use super::*;

fn tokens(code: &str) -> TokenStream {
    code.parse().unwrap()
}

/// The errors in a trait with these options.
fn errors(options: &str, item: &str) -> Vec<String> {
    let error = Service::parse(tokens(options), tokens(item)).err();
    let said = error.map(|error| error.into_iter().map(|it| it.to_string()).collect());
    said.unwrap_or_default()
}

/// The errors in a service that has these methods and a valid one.
fn of_methods(methods: &str) -> String {
    let item = format!("trait Kv {{ #[method(1)] fn get(key: u64) -> u64; {methods} }}");
    errors("codec = Fixed", &item).join(" | ")
}

#[test]
fn a_service_is_read_as_it_is_written() {
    let item = "
        /// Of the service.
        pub(crate) trait Kv {
            /// Of the method.
            #[method(1)]
            fn get_all(key: u64) -> std::result::Result<Vec<u8>, Missing>;
            #[method(0x7EFF, idempotent, codec = Growing::<4>,)]
            fn r#type(nothing: ());
            #[notify(3,)]
            fn touch(key: [u8; 4]);
        }";
    let options = tokens("crate = a::b, codec = Postcard,");
    let service = Service::parse(options, tokens(item)).unwrap();
    let text = |it: &dyn ToTokens| it.to_token_stream().to_string().replace(' ', "");
    assert_eq!(text(&service.krate), "a::b");
    assert_eq!(text(&service.visibility), "pub(crate)");
    assert_eq!((service.docs.len(), service.methods[0].docs.len()), (1, 1));
    let read = service.methods.iter().map(|it| {
        let error = it
            .output
            .error
            .as_ref()
            .map_or_else(String::new, |it| text(it));
        let [codec, request, value] = [&it.codec, &it.request, &it.output.value].map(|it| text(it));
        let kind = [(it.one_way, "one-way"), (it.idempotent, "idempotent")];
        let kind = kind
            .iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, kind)| *kind);
        let kind = kind.collect::<String>();
        let name = format!("{} {} {}", it.marker, it.number, it.argument);
        format!("{name}: {codec} {request} {value} {error} {kind}")
    });
    assert_eq!(
        read.collect::<Vec<_>>(),
        [
            "KvGetAll 1 key: Postcard u64 Vec<u8> Missing ",
            "KvType 32511 nothing: Growing::<4> () ()  idempotent",
            "KvTouch 3 key: Postcard [u8;4] ()  one-way",
        ]
    );
}

#[test]
fn a_trait_that_cannot_be_a_service_is_refused() {
    let cfg = "a service is the same in every build; `#[cfg]` goes in front of `#[service]`";
    for (item, said) in [
        ("struct Kv;", "expected `trait`"),
        ("trait Kv<T> {}", "a service has no parameters"),
        ("trait Kv: Send {}", "a service has no supertraits"),
        (
            "trait Kv where Self: Sized {}",
            "a service has no `where` clause",
        ),
        ("unsafe trait Kv {}", "a service is never `unsafe`"),
        ("auto trait Kv {}", "a service is not an auto trait"),
        (
            "#[must_use] trait Kv {}",
            "this attribute has no meaning here",
        ),
        ("#[cfg(test)] trait Kv {}", cfg),
    ] {
        assert_eq!(errors("codec = Fixed", item), [said]);
    }
    for (options, said) in [
        (
            "kodec = Fixed",
            "expected `codec = ...`, `base = ...`, `send`, `reflect` or `crate = ...`",
        ),
        ("base = 1, base = 2", "the base is given twice"),
        ("send, codec = Fixed, send", "`send` is given twice"),
        ("send = true", "expected `,`"),
        (
            "reflect, codec = Fixed, reflect",
            "`reflect` is given twice",
        ),
        ("base = 32511", "a base is from 0 to 32510"),
        ("base = -1", "a base is from 0 to 32510"),
        ("codec = Fixed, codec = Prost", "the codec is named twice"),
        ("codec = Fixed crate = a", "expected `,`"),
        ("codec", "expected `=`"),
    ] {
        assert_eq!(errors(options, "trait Kv {}"), [said]);
    }
    let codec = "the codec is missing: `#[service(codec = Fixed)]`, for example";
    assert_eq!(
        errors("", "trait Kv { #[method(1)] fn get(key: u64); }"),
        [codec]
    );
}

#[test]
fn numbers_are_explicit_and_in_range_and_never_used_twice() {
    let one = "a method has one `#[method(NUMBER)]` or `#[notify(NUMBER)]`";
    let range = "method numbers are from 1 to 32511";
    for (attributes, said) in [
        ("", one),
        ("#[method(2)] #[notify(3)]", one),
        (
            "#[method]",
            "expected attribute arguments in parentheses: #[method(...)]",
        ),
        ("#[method(\"2\")]", "expected integer literal"),
        ("#[method(-1)]", range),
        ("#[method(0)]", range),
        ("#[method(32512)]", range),
        ("#[method(0x8000)]", range),
        ("#[method(70000)]", range),
        (
            "#[method(1)]",
            "method number 1 is `get` already; numbers are never used twice",
        ),
        (
            "#[method(2, Fixed)]",
            "expected `codec = ...` or `idempotent`",
        ),
        (
            "#[method(2, codec = Fixed, codec = Fixed)]",
            "the codec is named twice",
        ),
        (
            "#[method(2, idempotent, idempotent)]",
            "`idempotent` is given twice",
        ),
        (
            "#[notify(2, idempotent)]",
            "a notification is never repeated",
        ),
        (
            "#[inline] #[method(2)]",
            "this attribute has no meaning here",
        ),
        (
            "#[cfg(test)] #[method(2)]",
            "a service is the same in every build; `#[cfg]` goes in front of `#[service]`",
        ),
    ] {
        assert_eq!(of_methods(&format!("{attributes} fn set(key: u64);")), said);
    }
}

#[test]
fn a_base_is_added_to_the_numbers_of_a_service() {
    let numbers = |options: &str, number: &str| {
        let item = format!("trait Kv {{ #[method({number})] fn get(key: u64); }}");
        let service = Service::parse(tokens(options), tokens(&item));
        service
            .map(|it| it.methods[0].number)
            .map_err(|error| error.to_string())
    };
    assert_eq!(numbers("codec = Fixed, base = 100", "7"), Ok(107));
    assert_eq!(numbers("base = 32510, codec = Fixed", "1"), Ok(32_511));
    let above = "method numbers are from 1 to 32511, with the base of their service";
    for wrong in ["0", "2", "65535"] {
        let said = numbers("base = 32510, codec = Fixed", wrong);
        assert_eq!(said.unwrap_err(), above);
    }
}

#[test]
fn a_method_has_a_name_a_message_and_a_result() {
    for (function, said) in [
        ("async fn set(key: u64);", "write `fn` without `async`"),
        ("unsafe fn set(key: u64);", "never `unsafe`"),
        ("const fn set(key: u64);", "never `const`"),
        ("extern \"C\" fn set(key: u64);", "no ABI"),
        ("fn set<T>(key: T);", "a method has no parameters"),
        ("fn set(key: u64) where u64: Send;", "no `where` clause"),
        ("fn set(key: u64) {}", "a method has no body"),
        ("fn set();", "`nothing: ()` is one, too"),
        ("fn set(&self, key: u64);", "a method has no `self`"),
        ("fn set(self: Rc<Self>);", "a method has no `self`"),
        ("fn set(key: u64, value: u64);", "make one message of them"),
        ("fn set(mut key: u64);", "a plain name"),
        ("fn set(_: u64);", "a plain name"),
        ("fn set((key, value): (u64, u64));", "a plain name"),
        ("fn set(#[allow(unused)] key: u64);", "no meaning here"),
        ("fn set(key: &str);", "owned types, as `String` for `&str`"),
        ("fn set(key: u64) -> &'static str;", "owned types"),
        (
            "fn set(key: u64) -> Result<u8, &'static str>;",
            "owned types",
        ),
        ("fn set(key: impl Into<u64>);", "name it"),
        ("fn set(key: u64) -> impl Sized;", "name it"),
        (
            "fn set(key: u64) -> io::Result<u64>;",
            "an alias hides the error",
        ),
        ("fn set(key: u64) -> Result;", "an alias hides the error"),
        (
            "const LIMIT: u64;",
            "a service has methods and nothing else",
        ),
    ] {
        let error = of_methods(&format!("#[method(2)] {function}"));
        assert!(error.contains(said), "{function}: {error}");
    }
    assert_eq!(
        of_methods("#[notify(2)] fn set(key: u64) -> u64;"),
        "a notification has no answer: it returns nothing"
    );
}

#[test]
fn names_that_the_attribute_makes_are_not_made_twice() {
    let with = |name: &str| of_methods(&format!("#[method(2)] fn {name}(key: u64);"));
    for name in ["poll", "stub", "client", "server", "r#Get"] {
        let error = with(name);
        assert!(
            error.contains("is something else already"),
            "{name}: {error}"
        );
    }
    for name in ["new", "register", "get_with", "get_response"] {
        let error = with(name);
        assert!(error.contains("the attribute makes"), "{name}: {error}");
    }
    for name in ["send", "send_server"] {
        assert_eq!(with(name), "");
        let item = format!("trait Kv {{ #[method(2)] fn {name}(key: u64); }}");
        let error = errors("codec = Fixed, send", &item).join(" | ");
        assert!(
            error.contains("is something else already"),
            "{name}: {error}"
        );
    }
    assert_eq!(with("reflection"), "");
    let item = "trait Kv { #[method(2)] fn reflection(key: u64); }";
    let error = errors("codec = Fixed, reflect", item).join(" | ");
    assert!(error.contains("is something else already"), "{error}");
    let error = of_methods("#[method(2)] fn a_with(key: u64); #[method(3)] fn a(key: u64);");
    assert!(error.contains("the attribute makes"), "{error}");
    assert_eq!(with("getting"), "");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let error = of_methods("fn first(key: u64); #[method(2)] async fn second(key: u64);");
    assert_eq!(error.split(" | ").count(), 2, "{error}");
}
