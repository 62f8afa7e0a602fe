//! The derive `Shape`: a structure of a fixed layout as JSON, an object with its fields. A
//! structure without names for its fields is an array.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Fields, Member, Path, Result, parse_quote};

/// The implementation of `Shape` for a structure.
pub(crate) fn code(item: TokenStream) -> Result<TokenStream> {
    let item: DeriveInput = syn::parse2(item)?;
    let Data::Struct(data) = &item.data else {
        let what = "a message of a fixed layout is a `struct`, and so is each of its parts";
        return Err(Error::new_spanned(&item.ident, what));
    };
    let krate = krate(&item)?;
    let is_packed = is_packed(&item);
    let body = match &data.fields {
        fields @ Fields::Named(_) => object(&krate, &item, fields, is_packed),
        fields if fields.is_empty() => unit(&krate),
        fields => array(&krate, fields, is_packed),
    };
    let name = &item.ident;
    let mut generics = item.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#krate::reflect::Shape));
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    Ok(quote! {
        impl #parameters #krate::reflect::Shape for #name #arguments #bounds {
            #body
        }
    })
}

fn object(krate: &Path, item: &DeriveInput, fields: &Fields, is_packed: bool) -> TokenStream {
    let type_name = item.ident.to_string();
    let idents = fields.iter().filter_map(|field| field.ident.as_ref());
    let names: Vec<_> = idents.map(|ident| ident.unraw().to_string()).collect();
    let members: Vec<_> = fields.members().collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let keys = names.iter().enumerate().map(|(place, name)| {
        let before = if place == 0 { "" } else { "," };
        format!("{before}\"{name}\":")
    });
    let writes = members.iter().map(|it| write(krate, it, is_packed));
    quote! {
        fn kind(types: &mut #krate::reflect::Types) -> #krate::reflect::Kind {
            let fields = ::std::vec![#(
                #krate::reflect::Field::new(
                    #names,
                    <#types as #krate::reflect::Shape>::kind(types),
                )
            ),*];
            types.structure(#type_name, fields)
        }

        fn read(json: &#krate::reflect::Value) -> ::core::option::Option<Self> {
            ::core::option::Option::Some(Self {#(
                #members: <#types as #krate::reflect::Shape>::read(json.get(#names)?)?
            ),*})
        }

        fn write(&self, json: &mut ::std::string::String) {
            json.push('{');
            #(
                json.push_str(#keys);
                #writes
            )*
            json.push('}');
        }
    }
}

/// A structure without fields is `null`, as `()` is.
fn unit(krate: &Path) -> TokenStream {
    quote! {
        fn kind(types: &mut #krate::reflect::Types) -> #krate::reflect::Kind {
            <() as #krate::reflect::Shape>::kind(types)
        }

        fn read(json: &#krate::reflect::Value) -> ::core::option::Option<Self> {
            json.as_null().map(|()| Self {})
        }

        fn write(&self, json: &mut ::std::string::String) {
            json.push_str("null");
        }
    }
}

fn array(krate: &Path, fields: &Fields, is_packed: bool) -> TokenStream {
    let members: Vec<_> = fields.members().collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let marks = (0..members.len()).map(|place| if place == 0 { "" } else { "," });
    let places = 0..members.len();
    let writes = members.iter().map(|it| write(krate, it, is_packed));
    quote! {
        fn kind(types: &mut #krate::reflect::Types) -> #krate::reflect::Kind {
            #krate::reflect::Kind::Tuple(
                ::std::vec![#(<#types as #krate::reflect::Shape>::kind(types)),*],
            )
        }

        fn read(json: &#krate::reflect::Value) -> ::core::option::Option<Self> {
            ::core::option::Option::Some(Self {#(
                #members: <#types as #krate::reflect::Shape>::read(json.get(#places)?)?
            ),*})
        }

        fn write(&self, json: &mut ::std::string::String) {
            json.push('[');
            #(
                json.push_str(#marks);
                #writes
            )*
            json.push(']');
        }
    }
}

/// The statement that writes a field. A field of a packed structure is copied, because it has no
/// reference.
fn write(krate: &Path, member: &Member, is_packed: bool) -> TokenStream {
    let field = match is_packed {
        true => quote!(&{ self.#member }),
        false => quote!(&self.#member),
    };
    quote!(#krate::reflect::Shape::write(#field, json);)
}

/// The path of `dunlin-service`, from `#[shape(crate = PATH)]`.
fn krate(item: &DeriveInput) -> Result<Path> {
    let mut krate = parse_quote!(::dunlin::service);
    for attribute in item.attrs.iter().filter(|it| it.path().is_ident("shape")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = ...`"));
            }
            krate = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(krate)
}

fn is_packed(item: &DeriveInput) -> bool {
    let layouts = item.attrs.iter().filter(|it| it.path().is_ident("repr"));
    let words = layouts.flat_map(|it| it.meta.to_token_stream());
    words
        .into_iter()
        .any(|it| it.to_string().contains("packed"))
}

#[cfg(test)]
mod tests;
