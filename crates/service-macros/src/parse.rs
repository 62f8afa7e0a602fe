//! Reads a trait that has the attribute. Reports every construct that a service cannot have as an
//! error at its place.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ItemTrait, LitInt, Pat, Path, PathArguments,
    Result, ReturnType, Safety, Signature, Token, TraitItem, TraitItemFn, Type, Visibility,
    parse_quote,
};

/// The largest number of a method. The 256 numbers after it belong to Dunlin's own services. Larger
/// request types are used for calls with metadata.
const LAST_NUMBER: u16 = 0x7EFF;

/// An error has its own encoding, so the attribute must see the error type.
const RESULT: &str = "write `Result<VALUE, ERROR>`: an alias hides the error from the attribute";

/// A trait that is a service.
pub(crate) struct Service {
    pub(crate) krate: Path,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// The service also has a server whose futures are `Send`.
    pub(crate) is_send: bool,
    /// Servers can describe the service, and call it by JSON.
    pub(crate) is_reflected: bool,
    pub(crate) methods: Vec<Method>,
}

/// A method of the service.
pub(crate) struct Method {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) name: Ident,
    /// The marker type of the method: `KvGet` for `get` of `Kv`.
    pub(crate) marker: Ident,
    pub(crate) number: u16,
    pub(crate) one_way: bool,
    pub(crate) idempotent: bool,
    pub(crate) codec: Type,
    pub(crate) argument: Ident,
    pub(crate) request: Type,
    pub(crate) output: Output,
}

/// The result of a method, and its own error if it has one.
pub(crate) struct Output {
    pub(crate) value: Type,
    pub(crate) error: Option<Type>,
}

/// The content of the parentheses of `#[service(...)]`.
struct Options {
    codec: Option<Type>,
    base: Option<Base>,
    /// The word `send`, if it is there.
    send: Option<Ident>,
    /// The word `reflect`, if it is there.
    reflect: Option<Ident>,
    krate: Path,
}

/// The number that a service adds to the numbers of its methods.
#[derive(Clone, Copy)]
struct Base(u16);

/// The content of the parentheses of `#[method(...)]`.
struct Numbered {
    number: LitInt,
    idempotent: Option<Ident>,
    codec: Option<Type>,
}

impl Service {
    pub(crate) fn parse(options: TokenStream, item: TokenStream) -> Result<Self> {
        let options = Options::parse.parse2(options)?;
        let item: ItemTrait = syn::parse2(item)?;
        let generics = &item.generics;
        absent(item.unsafety, "a service is never `unsafe`")?;
        absent(item.modifiers.auto_token, "a service is not an auto trait")?;
        absent(generics.params.first(), "a service has no parameters")?;
        absent(
            generics.where_clause.as_ref(),
            "a service has no `where` clause",
        )?;
        absent(item.supertraits.first(), "a service has no supertraits")?;
        let docs = docs(item.attrs)?;
        let mut methods: Vec<Method> = Vec::new();
        let mut wrong: Option<Error> = None;
        for it in item.items {
            let method = Method::parse(&item.ident, it, &options);
            match method.and_then(|it| it.beside(&item.ident, &methods, &options)) {
                Ok(method) => methods.push(method),
                // The attribute reports all mistakes at once.
                Err(error) => match &mut wrong {
                    Some(wrong) => wrong.combine(error),
                    None => wrong = Some(error),
                },
            }
        }
        let service = Self {
            krate: options.krate,
            docs,
            visibility: item.vis,
            name: item.ident,
            is_send: options.send.is_some(),
            is_reflected: options.reflect.is_some(),
            methods,
        };
        wrong.map_or(Ok(service), Err)
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self {
            codec: None,
            base: None,
            send: None,
            reflect: None,
            krate: parse_quote!(::dunlin::service),
        };
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = input.call(Path::parse_mod_style)?;
            } else if is_word(input, "base") {
                let word = input.parse::<Ident>()?;
                absent(options.base.map(|_| word), "the base is given twice")?;
                input.parse::<Token![=]>()?;
                options.base = Some(Base::parse(input)?);
            } else if is_word(input, "send") {
                let word = input.parse::<Ident>()?;
                absent(options.send.replace(word), "`send` is given twice")?;
            } else if is_word(input, "reflect") {
                let word = input.parse::<Ident>()?;
                absent(options.reflect.replace(word), "`reflect` is given twice")?;
            } else {
                absent(options.codec.as_ref(), "the codec is named twice")?;
                let expected = "`codec = ...`, `base = ...`, `send`, `reflect` or `crate = ...`";
                options.codec = Some(parse_codec(input, expected)?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Parse for Numbered {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut numbered = Self {
            number: input.parse()?,
            idempotent: None,
            codec: None,
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if is_word(input, "idempotent") {
                absent(numbered.idempotent.as_ref(), "`idempotent` is given twice")?;
                numbered.idempotent = Some(input.parse()?);
            } else {
                absent(numbered.codec.as_ref(), "the codec is named twice")?;
                numbered.codec = Some(parse_codec(input, "`codec = ...` or `idempotent`")?);
            }
        }
        Ok(numbered)
    }
}

impl Parse for Base {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let base: LitInt = input.parse()?;
        let value = base.base10_parse().ok().filter(|base| *base < LAST_NUMBER);
        let what = format!("a base is from 0 to {}", LAST_NUMBER - 1);
        value
            .map(Self)
            .ok_or_else(|| Error::new_spanned(base, what))
    }
}

fn is_word(input: ParseStream<'_>, expected: &str) -> bool {
    let word = input.fork().parse::<Ident>();
    word.is_ok_and(|word| word == expected)
}

fn parse_codec(input: ParseStream<'_>, expected: &str) -> Result<Type> {
    let name: Ident = input.parse()?;
    if name != "codec" {
        return Err(Error::new(name.span(), format!("expected {expected}")));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}

impl Method {
    fn parse(service: &Ident, item: TraitItem, options: &Options) -> Result<Self> {
        let TraitItem::Fn(TraitItemFn {
            attrs,
            sig,
            default,
            ..
        }) = item
        else {
            let what = "a service has methods and nothing else";
            return Err(Error::new_spanned(item, what));
        };
        let name = &sig.ident;
        let (numbers, others): (Vec<_>, Vec<_>) = attrs
            .into_iter()
            .partition(|it| it.path().is_ident("method") || it.path().is_ident("notify"));
        let docs = docs(others)?;
        let [attribute] = &numbers[..] else {
            let what = "a method has one `#[method(NUMBER)]` or `#[notify(NUMBER)]`";
            return Err(Error::new_spanned(name, what));
        };
        let one_way = attribute.path().is_ident("notify");
        let Numbered {
            number,
            idempotent,
            codec: own,
        } = attribute.parse_args()?;
        let repeated = idempotent.as_ref().filter(|_| one_way);
        absent(repeated, "a notification is never repeated")?;
        let codec = own.or_else(|| options.codec.clone()).ok_or_else(|| {
            let what = "the codec is missing: `#[service(codec = Fixed)]`, for example";
            Error::new_spanned(name, what)
        })?;
        plain(&sig)?;
        absent(default, "a method has no body: servers implement it")?;
        let (argument, request) = message(&sig)?;
        if one_way && !matches!(sig.output, ReturnType::Default) {
            let what = "a notification has no answer: it returns nothing";
            return Err(Error::new_spanned(&sig.output, what));
        }
        Ok(Self {
            docs,
            marker: marker(service, name),
            number: in_range(&number, options.base)?,
            one_way,
            idempotent: idempotent.is_some(),
            codec,
            argument,
            request,
            output: output(&sig.output)?,
            name: sig.ident,
        })
    }

    /// Returns the method, if its number and its names differ from those of the other methods.
    fn beside(self, service: &Ident, others: &[Self], options: &Options) -> Result<Self> {
        let refuse = |what: String| Err(Error::new_spanned(&self.name, what));
        if let Some(other) = others.iter().find(|it| it.number == self.number) {
            return refuse(format!(
                "method number {} is `{}` already; numbers are never used twice",
                self.number, other.name
            ));
        }
        let (name, marker) = (self.name.unraw().to_string(), &self.marker);
        let made = ["Server", "Poll", "Client", "Stub"].as_slice();
        let of_send = options.send.as_ref().map(|_| ["Send", "SendServer"]);
        let of_reflect = options.reflect.as_ref().map(|_| ["Reflection"]);
        let made = made.iter().chain(of_send.iter().flatten());
        let mut made = made.chain(of_reflect.iter().flatten());
        if made.any(|it| *marker == format!("{service}{it}"))
            || others.iter().any(|it| it.marker == *marker)
        {
            return refuse(format!(
                "`{marker}` would stand for this method and is something else already; choose \
                 another name"
            ));
        }
        let is_of = |whole: &str, part: &Ident| {
            let rest = whole.strip_prefix(&part.unraw().to_string());
            rest.is_some_and(|rest| ["_with", "_response"].contains(&rest))
        };
        let is_taken =
            |it: &Self| is_of(&name, &it.name) || is_of(&it.name.unraw().to_string(), &self.name);
        if ["new", "over", "register"].contains(&&*name) || others.iter().any(is_taken) {
            return refuse(format!(
                "a function that the attribute makes would have the name of `{name}`; choose \
                 another name"
            ));
        }
        Ok(self)
    }
}

/// The name of the type that stands for a method.
fn marker(service: &Ident, method: &Ident) -> Ident {
    let mut name = service.unraw().to_string();
    for word in method.unraw().to_string().split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.extend(letters);
    }
    Ident::new(&name, method.span())
}

fn in_range(number: &LitInt, base: Option<Base>) -> Result<u16> {
    let value = number.base10_parse::<u16>().unwrap_or_default();
    let with_base = value.checked_add(base.map_or(0, |base| base.0));
    match with_base {
        Some(whole) if value > 0 && whole <= LAST_NUMBER => Ok(whole),
        _ => {
            let of = base.map_or("", |_| ", with the base of their service");
            let what = format!("method numbers are from 1 to {LAST_NUMBER}{of}");
            Err(Error::new_spanned(number, what))
        }
    }
}

/// Accepts only `fn`, a name, arguments and a return type.
fn plain(signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    absent(
        signature.asyncness,
        "write `fn` without `async`: servers implement it as `async fn`, and those on the poll API \
         as `fn`",
    )?;
    let safety = match &signature.safety {
        Safety::Unsafe(word) => Some(word.to_token_stream()),
        Safety::Safe(word) => Some(word.to_token_stream()),
        Safety::Default => None,
    };
    absent(safety, "a method is never `unsafe`, nor `safe`")?;
    absent(signature.constness, "a method is never `const`")?;
    absent(signature.abi.as_ref(), "a method has no ABI")?;
    absent(generics.params.first(), "a method has no parameters")?;
    absent(
        generics.where_clause.as_ref(),
        "a method has no `where` clause",
    )
}

/// The one argument: its name and type.
fn message(signature: &Signature) -> Result<(Ident, Type)> {
    let inputs = &signature.inputs;
    let what = match (inputs.first(), inputs.len()) {
        (None, _) => "a method has one argument, its message; `nothing: ()` is one, too",
        (Some(FnArg::Receiver(_)), _) => {
            "a method has no `self`: its one argument is its message, as it is sent"
        }
        (Some(FnArg::Typed(only)), 1) => return named(only),
        _ => "a method has one argument: make one message of them",
    };
    Err(Error::new_spanned(signature, what))
}

/// Name and type of an argument.
fn named(argument: &syn::PatType) -> Result<(Ident, Type)> {
    absent(argument.attrs.first(), "this attribute has no meaning here")?;
    match &*argument.pat {
        Pat::Ident(name)
            if name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none() =>
        {
            Ok((name.ident.clone(), owned(&argument.ty)?))
        }
        pattern => Err(Error::new_spanned(pattern, "the message has a plain name")),
    }
}

/// Accepts a type of messages.
fn owned(it: &Type) -> Result<Type> {
    let what = match it {
        Type::Reference(_) => {
            "messages are owned types, as `String` for `&str`; what a server borrows is the \
             codec's business"
        }
        Type::ImplTrait(_) => "both sides must know the type of a message: name it",
        it => return Ok(it.clone()),
    };
    Err(Error::new_spanned(it, what))
}

/// The output of a method: one that can fail returns a `Result` with two parameters.
fn output(output: &ReturnType) -> Result<Output> {
    let ReturnType::Type(_, returned) = output else {
        let (value, error) = (parse_quote!(()), None);
        return Ok(Output { value, error });
    };
    if let Type::Path(path) = &**returned
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
    {
        let PathArguments::AngleBracketed(arguments) = &last.arguments else {
            return Err(Error::new_spanned(returned, RESULT));
        };
        let mut types = arguments.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(it) => Some(it),
            _ => None,
        });
        let (Some(value), Some(error), None) = (types.next(), types.next(), types.next()) else {
            return Err(Error::new_spanned(returned, RESULT));
        };
        let (value, error) = (owned(value)?, Some(owned(error)?));
        return Ok(Output { value, error });
    }
    let (value, error) = (owned(returned)?, None);
    Ok(Output { value, error })
}

/// Returns the attributes, if all of them are documentation.
fn docs(attributes: Vec<Attribute>) -> Result<Vec<Attribute>> {
    let other = attributes.iter().find(|it| !it.path().is_ident("doc"));
    let what = match other {
        Some(it) if it.path().is_ident("cfg") => {
            "a service is the same in every build; `#[cfg]` goes in front of `#[service]`"
        }
        _ => "this attribute has no meaning here",
    };
    absent(other, what)?;
    Ok(attributes)
}

/// An error at a construct that must be absent.
fn absent(found: Option<impl ToTokens>, what: &str) -> Result<()> {
    found.map_or(Ok(()), |it| Err(Error::new_spanned(it, what)))
}

#[cfg(test)]
mod tests;
