//! A service with messages of each codec, whose methods return values and errors, or nothing. All
//! three kinds of servers implement it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dunlin::service::reflect::{InJson, Kind, Misfit, Shape, Types};
use dunlin::service::{
    Codec, Context, DecodeError, EncodeError, Fixed, Growing, Grown, Postcard, Prost,
};
use dunlin::{Cx, service};
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Item {
    pub(crate) number: U64,
    pub(crate) letters: [u8; 2],
}

#[derive(Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Price {
    cents: U32,
}

#[derive(Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Missing {
    newest: U64,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Order {
    pub(crate) items: Vec<u64>,
    pub(crate) note: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) enum Refused {
    Empty,
    Unknown { item: u64 },
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
pub(crate) struct Person {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint32, tag = "2")]
    pub(crate) age: u32,
}

/// Text, unchanged: a codec of the program's own.
pub(crate) struct Text;

impl Codec<String> for Text {
    type View<'a> = &'a str;

    fn size(value: &String) -> Result<usize, EncodeError> {
        match value.contains('\0') {
            true => Err(EncodeError),
            false => Ok(value.len()),
        }
    }

    fn encode(value: &String, out: &mut [u8]) {
        out.copy_from_slice(value.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<&str, DecodeError> {
        std::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed)
    }

    fn to_owned(view: &str) -> String {
        view.into()
    }
}

impl InJson<Text> for String {
    fn kind(types: &mut Types) -> Kind {
        dunlin::service::reflect::kind_of::<Self>(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        let text: Self = dunlin::service::reflect::from_json(json)?;
        match &*text {
            "panic" => panic!("the conversion panics, as the test wants"),
            _ => Ok(text),
        }
    }

    fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

#[service(codec = Postcard, reflect, send, base = 600)]
pub(crate) trait Shop {
    #[method(1, codec = Fixed, idempotent)]
    fn price(item: Item) -> Result<Price, Missing>;
    #[method(2, codec = Growing<8>)]
    fn grown(item: Item) -> Item;
    #[method(3)]
    fn order(order: Order) -> Result<u64, Refused>;
    #[method(4, codec = Prost)]
    fn greet(person: Person) -> Person;
    #[method(5, codec = Text)]
    fn shout(text: String) -> String;
    #[notify(6)]
    fn visit(nothing: ());
    /// The number of visits.
    #[method(7)]
    fn visits(nothing: ()) -> u64;
    /// The method's name, the tenant, and whether the client has a deadline.
    #[method(8)]
    fn context(nothing: ()) -> (String, Option<String>, bool);
    /// Counts as a visit, and never completes.
    #[method(9)]
    fn hang(nothing: ()) -> ();
}

/// The implementation, which all threads share.
#[derive(Clone, Default)]
pub(crate) struct Keeper {
    visits: Arc<AtomicU64>,
}

impl Keeper {
    fn price_of(item: &Item) -> Result<Price, Missing> {
        match item.number.get() {
            number @ 1..100 => Ok(Price {
                cents: U32::new(u32::try_from(number).unwrap() * 5),
            }),
            _ => Err(Missing {
                newest: U64::new(99),
            }),
        }
    }

    fn total(order: &Order) -> Result<u64, Refused> {
        if order.items.is_empty() {
            return Err(Refused::Empty);
        }
        match order.items.iter().find(|item| **item > 99) {
            Some(item) => Err(Refused::Unknown { item: *item }),
            None => Ok(order.items.iter().sum::<u64>() * 5),
        }
    }

    fn older(person: Person) -> Person {
        Person {
            age: person.age + 1,
            ..person
        }
    }

    /// The codec cannot encode the answer to "nothing".
    fn loud(text: &str) -> String {
        match text {
            "nothing" => "\0".to_owned(),
            text => text.to_uppercase(),
        }
    }

    fn visit_once(&self) {
        self.visits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }
}

fn facts(context: &Context<'_>) -> (String, Option<String>, bool) {
    let tenant = context.metadata().get("tenant").map(str::to_owned);
    (
        context.method().to_owned(),
        tenant,
        context.deadline.is_some(),
    )
}

impl Shop for Keeper {
    async fn price(&self, item: &Item, _: Context<'_>) -> Result<Price, Missing> {
        Self::price_of(item)
    }

    async fn grown(&self, item: Grown<'_, Item>, _: Context<'_>) -> Item {
        *item
    }

    async fn order(&self, order: Order, _: Context<'_>) -> Result<u64, Refused> {
        Self::total(&order)
    }

    async fn greet(&self, person: Person, _: Context<'_>) -> Person {
        Self::older(person)
    }

    async fn shout(&self, text: &str, _: Context<'_>) -> String {
        Self::loud(text)
    }

    async fn visit(&self, (): (), _: Context<'_>) {
        self.visit_once();
    }

    async fn visits(&self, (): (), _: Context<'_>) -> u64 {
        self.count()
    }

    async fn context(&self, (): (), context: Context<'_>) -> (String, Option<String>, bool) {
        facts(&context)
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        self.visit_once();
        std::future::pending().await
    }
}

impl ShopSend for Keeper {
    async fn price(&self, item: Item, _: Context<'_>) -> Result<Price, Missing> {
        Self::price_of(&item)
    }

    async fn grown(&self, item: Item, _: Context<'_>) -> Item {
        item
    }

    async fn order(&self, order: Order, _: Context<'_>) -> Result<u64, Refused> {
        Self::total(&order)
    }

    async fn greet(&self, person: Person, _: Context<'_>) -> Person {
        Self::older(person)
    }

    async fn shout(&self, text: String, _: Context<'_>) -> String {
        Self::loud(&text)
    }

    async fn visit(&self, (): (), _: Context<'_>) {
        self.visit_once();
    }

    async fn visits(&self, (): (), _: Context<'_>) -> u64 {
        self.count()
    }

    async fn context(&self, (): (), context: Context<'_>) -> (String, Option<String>, bool) {
        facts(&context)
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        self.visit_once();
        std::future::pending().await
    }
}

impl ShopPoll for Keeper {
    fn price(&mut self, item: &Item, _: &mut Cx<'_>, _: Context<'_>) -> Result<Price, Missing> {
        Self::price_of(item)
    }

    fn grown(&mut self, item: Grown<'_, Item>, _: &mut Cx<'_>, _: Context<'_>) -> Item {
        *item
    }

    fn order(&mut self, order: Order, _: &mut Cx<'_>, _: Context<'_>) -> Result<u64, Refused> {
        Self::total(&order)
    }

    fn greet(&mut self, person: Person, _: &mut Cx<'_>, _: Context<'_>) -> Person {
        Self::older(person)
    }

    fn shout(&mut self, text: &str, _: &mut Cx<'_>, _: Context<'_>) -> String {
        Self::loud(text)
    }

    fn visit(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {
        self.visit_once();
    }

    fn visits(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> u64 {
        self.count()
    }

    fn context(
        &mut self,
        (): (),
        _: &mut Cx<'_>,
        context: Context<'_>,
    ) -> (String, Option<String>, bool) {
        facts(&context)
    }

    fn hang(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}
}
