//! gRPC by tonic: one HTTP/2 connection without delay and with large windows and frames, messages
//! by prost with shared bytes.

use std::net::{Ipv4Addr, SocketAddr};

use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

use super::{Peer, drive_tasks, runtime};
use crate::load::Load;
use crate::work;

/// The code that `build.rs` makes of `echo.proto`.
mod service {
    #![allow(missing_docs, reason = "the service is described in the .proto file")]
    #![allow(clippy::all, unreachable_pub, reason = "the code is generated")]
    tonic::include_proto!("echo");
}

use service::Words;
use service::echo_client::EchoClient;
use service::echo_server::{Echo, EchoServer};

/// Window for unacknowledged bytes, of one call and of all together.
const WINDOW: u32 = 16 << 20;

/// Bytes of a frame.
const FRAME: u32 = 1 << 20;

/// tonic.
pub(crate) struct Grpc;

struct Service;

#[tonic::async_trait]
impl Echo for Service {
    async fn answer(&self, request: Request<Words>) -> Result<Response<Words>, Status> {
        let request = request.into_inner().words;
        let mut response = vec![0; request.len()];
        work::answer(&request, &mut response);
        let words = response.into();
        Ok(Response::new(Words { words }))
    }
}

impl Peer for Grpc {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let incoming = TcpIncoming::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            ready(&format!("http://{}", incoming.local_addr()?))?;
            let server = Server::builder()
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_frame_size(FRAME)
                .serve_with_incoming(EchoServer::new(Service), incoming.with_nodelay(Some(true)));
            Ok(server.await?)
        })
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let channel = Endpoint::from_shared(address.to_owned())?
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_frame_size(FRAME)
                .tcp_nodelay(true)
                .connect()
                .await?;
            let client = EchoClient::new(channel);
            let call = move |request: Vec<u8>| {
                let words = request.into();
                let mut client = client.clone();
                async move {
                    let response = client.answer(Words { words }).await?;
                    Ok(response.into_inner().words)
                }
            };
            drive_tasks(load, call).await
        })
    }
}
