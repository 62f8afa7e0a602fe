//! A purchase that passes through two servers, as OpenTelemetry exports it: each span with its
//! parent. The exporter keeps the spans in memory; another one would send them to a collector.

use dunlin::spans::set_traces;
use dunlin::{Channel, Server};
use dunlin_otel_example::{
    Counter, OpenTelemetry, ShopClient, ShopServer, StockClient, StockServer, Storehouse,
};
use opentelemetry::trace::{SpanId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

fn main() -> anyhow::Result<()> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    let subscriber = tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(layer);
    tracing::subscriber::set_global_default(subscriber)?;
    set_traces(OpenTelemetry)?;

    let stock = Server::builder()
        .service(|_| StockServer(Storehouse))
        .start("127.0.0.1:0")?;
    let to_stock = Channel::builder()
        .address(stock.address().to_string())
        .open()?;
    let shop = Server::builder()
        .service(move |_| ShopServer(Counter(StockClient::over(to_stock.clone()))))
        .start("127.0.0.1:0")?;
    let to_shop = Channel::builder()
        .address(shop.address().to_string())
        .open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let customer = ShopClient::over(to_shop);
        println!("14 goods cost {}", customer.buy(&14).await?);
        anyhow::Ok(())
    })?;
    // After its drain, a server has ended the spans of its requests.
    shop.drain();
    stock.drain();
    print(&exporter.get_finished_spans()?, SpanId::INVALID, 0);
    Ok(())
}

/// Prints the children of a span, each with its own.
fn print(spans: &[SpanData], parent: SpanId, depth: usize) {
    for span in spans.iter().filter(|span| span.parent_span_id == parent) {
        println!(
            "{:width$}{} {:?}",
            "",
            span.name,
            span.span_kind,
            width = 2 * depth
        );
        print(spans, span.span_context.span_id(), depth + 1);
    }
}
