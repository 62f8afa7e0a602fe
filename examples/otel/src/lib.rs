//! The connection between Dunlin's spans and OpenTelemetry, for programs to copy, and two services
//! whose calls show it: a shop, and the stock that the shop asks.

#![forbid(unsafe_code)]

use dunlin::service::{Context, Postcard};
use dunlin::spans::{TraceParent, Traces};
use dunlin::{Channel, service};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The numbers that OpenTelemetry gives to spans. A program calls
/// `dunlin::spans::set_traces(OpenTelemetry)` to use them.
#[derive(Clone, Copy, Debug)]
pub struct OpenTelemetry;

impl Traces for OpenTelemetry {
    fn trace_of(&self, span: &Span) -> Option<TraceParent> {
        let context = span.context();
        let of = context.span().span_context().clone();
        let (trace, span) = (of.trace_id().to_bytes(), of.span_id().to_bytes());
        of.is_valid()
            .then(|| TraceParent::new(trace, span, of.is_sampled()))
    }

    fn set_parent(&self, span: &Span, parent: TraceParent) {
        let of = SpanContext::new(
            TraceId::from_bytes(parent.trace()),
            SpanId::from_bytes(parent.span()),
            TraceFlags::default().with_sampled(parent.is_sampled()),
            true,
            TraceState::default(),
        );
        // It fails only for a span that OpenTelemetry does not record.
        let _ = span.set_parent(opentelemetry::Context::new().with_remote_span_context(of));
    }
}

/// A store of goods.
#[service(codec = Postcard, send)]
pub trait Stock {
    /// Takes goods out of the stock; the error is the number in stock.
    #[method(1)]
    fn take(goods: u32) -> Result<(), u32>;
}

/// The service that customers call.
#[service(codec = Postcard, send)]
pub trait Shop {
    /// Sells goods; the error is the number in stock.
    #[method(1)]
    fn buy(goods: u32) -> Result<u64, u32>;
}

/// A stock of 100.
#[derive(Clone, Copy, Debug)]
pub struct Storehouse;

/// A shop over the channel to its stock.
#[derive(Clone, Debug)]
pub struct Counter(pub StockClient<Channel>);

const THERE: u32 = 100;
const PRICE: u64 = 3;

impl Stock for Storehouse {
    async fn take(&self, goods: u32, _: Context<'_>) -> Result<(), u32> {
        if goods > THERE { Err(THERE) } else { Ok(()) }
    }
}

impl Counter {
    /// The call to the stock belongs to the request of `context`: it ends when the request ends,
    /// and is part of its trace.
    async fn sell(&self, goods: u32, context: Context<'_>) -> Result<u64, u32> {
        match self.0.take(&goods).under(&context).await {
            Ok(()) => Ok(u64::from(goods) * PRICE),
            Err(dunlin::service::Failure::Method(there)) => Err(there),
            Err(_) => Err(0),
        }
    }
}

impl Shop for Counter {
    async fn buy(&self, goods: u32, context: Context<'_>) -> Result<u64, u32> {
        self.sell(goods, context).await
    }
}

impl ShopSend for Counter {
    async fn buy(&self, goods: u32, context: Context<'_>) -> Result<u64, u32> {
        self.sell(goods, context).await
    }
}
