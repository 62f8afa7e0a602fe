//! Reads a trait with the attribute. Everything that cannot be a service is an error at its place.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ItemTrait, LitInt, Pat, Path, PathArguments,
    Result, ReturnType, Token, TraitItem, TraitItemFn, Type, Visibility, parse_quote,
};

/// Numbers above stand for methods with metadata.
const LAST_NUMBER: u16 = 0x7FFF;

/// A trait that is a service.
pub(crate) struct Service {
    pub(crate) krate: Path,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) methods: Vec<Method>,
}

/// One of its methods.
pub(crate) struct Method {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) number: u16,
    pub(crate) one_way: bool,
    pub(crate) codec: Type,
    pub(crate) argument: Ident,
    pub(crate) request: Type,
    pub(crate) output: Output,
}

/// What a method returns, and its own error if it has one.
pub(crate) struct Output {
    pub(crate) value: Type,
    pub(crate) error: Option<Type>,
}

/// What stands in the parentheses of `#[service(...)]`.
struct Options {
    codec: Option<Type>,
    krate: Path,
}

/// What stands in the parentheses of `#[method(...)]`.
struct Numbered {
    number: LitInt,
    codec: Option<Type>,
}

impl Service {
    pub(crate) fn parse(options: TokenStream, item: TokenStream) -> Result<Self> {
        let options = Options::parse.parse2(options)?;
        let item: ItemTrait = syn::parse2(item)?;
        if let Some(parameter) = item.generics.params.first() {
            return Err(Error::new(parameter.span(), "a service has no parameters"));
        }
        if let Some(bound) = item.supertraits.first() {
            return Err(Error::new(bound.span(), "a service has no supertraits"));
        }
        let (docs, others) = split_docs(item.attrs);
        refuse(&others)?;
        let mut methods: Vec<Method> = Vec::new();
        for item in item.items {
            let TraitItem::Fn(function) = item else {
                return Err(Error::new(
                    item.span(),
                    "a service has methods and nothing else",
                ));
            };
            let method = Method::parse(function, options.codec.as_ref())?;
            if let Some(other) = methods.iter().find(|it| it.number == method.number) {
                let what = format!(
                    "method number {} is `{}` already; numbers are never used twice",
                    method.number, other.name
                );
                return Err(Error::new(method.name.span(), what));
            }
            methods.push(method);
        }
        Ok(Self {
            krate: options.krate,
            docs,
            visibility: item.vis,
            name: item.ident,
            methods,
        })
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self {
            codec: None,
            krate: parse_quote!(::dunlin::service),
        };
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = input.call(Path::parse_mod_style)?;
            } else {
                options.codec = Some(parse_codec(input)?);
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
        let number = input.parse()?;
        let mut codec = None;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
            codec = Some(parse_codec(input)?);
        }
        Ok(Self { number, codec })
    }
}

fn parse_codec(input: ParseStream<'_>) -> Result<Type> {
    let name: Ident = input.parse()?;
    if name != "codec" {
        return Err(Error::new(name.span(), "expected `codec = ...`"));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}

impl Method {
    fn parse(function: TraitItemFn, codec: Option<&Type>) -> Result<Self> {
        let name = function.sig.ident.clone();
        let (docs, others) = split_docs(function.attrs);
        let (numbers, wrong): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|it| it.path().is_ident("method") || it.path().is_ident("notify"));
        refuse(&wrong)?;
        let [attribute] = &numbers[..] else {
            let what = "a method has one `#[method(NUMBER)]` or `#[notify(NUMBER)]`";
            return Err(Error::new(name.span(), what));
        };
        let one_way = attribute.path().is_ident("notify");
        let Numbered { number, codec: own } = attribute.parse_args()?;
        let codec = own.or_else(|| codec.cloned()).ok_or_else(|| {
            let what = "the codec is missing: `#[service(codec = Fixed)]`, for example";
            Error::new(name.span(), what)
        })?;
        let (argument, request) = message(&function.sig)?;
        let output = output(&function.sig.output);
        if one_way && !matches!(function.sig.output, ReturnType::Default) {
            let what = "nobody waits for a notification: it returns nothing";
            return Err(Error::new(function.sig.output.span(), what));
        }
        Ok(Self {
            docs,
            name,
            number: in_range(&number)?,
            one_way,
            codec,
            argument,
            request,
            output,
        })
    }
}

fn in_range(number: &LitInt) -> Result<u16> {
    let value: u16 = number.base10_parse()?;
    if (1..=LAST_NUMBER).contains(&value) {
        return Ok(value);
    }
    let what = format!("method numbers are from 1 to {LAST_NUMBER}");
    Err(Error::new(number.span(), what))
}

/// The one argument: its name and type.
fn message(signature: &syn::Signature) -> Result<(Ident, Type)> {
    if let Some(parameter) = signature.generics.params.first() {
        return Err(Error::new(parameter.span(), "a method has no parameters"));
    }
    if let Some(word) = signature.asyncness {
        let what = "without `async`: the attribute makes both kinds";
        return Err(Error::new(word.span(), what));
    }
    let mut inputs = signature.inputs.iter();
    let (Some(FnArg::Typed(only)), None) = (inputs.next(), inputs.next()) else {
        let what = "a method has one argument, its message, and no receiver";
        return Err(Error::new(signature.span(), what));
    };
    let Pat::Ident(name) = &*only.pat else {
        return Err(Error::new(only.pat.span(), "the message has a plain name"));
    };
    Ok((name.ident.clone(), (*only.ty).clone()))
}

/// `Result` with two parameters is what a method that can fail returns.
fn output(output: &ReturnType) -> Output {
    let ReturnType::Type(_, returned) = output else {
        let (value, error) = (parse_quote!(()), None);
        return Output { value, error };
    };
    if let Type::Path(path) = &**returned
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
    {
        let mut types = arguments.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(it) => Some(it.clone()),
            _ => None,
        });
        if let (Some(value), Some(error), None) = (types.next(), types.next(), types.next()) {
            let error = Some(error);
            return Output { value, error };
        }
    }
    let (value, error) = ((**returned).clone(), None);
    Output { value, error }
}

fn split_docs(attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    attributes
        .into_iter()
        .partition(|it| it.path().is_ident("doc") || it.path().is_ident("cfg"))
}

fn refuse(attributes: &[Attribute]) -> Result<()> {
    match attributes.first() {
        Some(attribute) => Err(Error::new(
            attribute.span(),
            "this attribute has no meaning here",
        )),
        None => Ok(()),
    }
}
