//! tarpc: bincode over a TCP connection with `TCP_NODELAY`. Each request runs in a task of its own.

use std::net::Ipv4Addr;

use futures::StreamExt;
use serde_bytes::ByteBuf;
use tarpc::context::{self, Context};
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::{Framed, LengthDelimitedCodec};
use tarpc::{client, serde_transport};
use tokio::net::{TcpListener, TcpStream};

use super::{Peer, drive_tasks, runtime};
use crate::load::Load;
use crate::work;

pub(crate) struct Tarpc;

/// The experiment's work as a service.
#[tarpc::service]
trait Echo {
    /// Answers with words that depend on all words of the request. `ByteBuf` makes the codec copy
    /// the bytes as a block, and not one by one.
    async fn answer(words: ByteBuf) -> ByteBuf;
}

#[derive(Clone)]
struct Service;

impl Echo for Service {
    async fn answer(self, _: Context, words: ByteBuf) -> ByteBuf {
        let mut response = vec![0; words.len()];
        work::answer(&words, &mut response);
        ByteBuf::from(response)
    }
}

impl Peer for Tarpc {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            ready(&listener.local_addr()?.to_string())?;
            loop {
                let (stream, _) = listener.accept().await?;
                let transport = serde_transport::new(framed(stream)?, Bincode::default());
                let channel = BaseChannel::with_defaults(transport);
                let requests = channel.execute(Service.serve());
                let run = requests.for_each(|request| async {
                    tokio::spawn(request);
                });
                run.await;
            }
        })
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let stream = TcpStream::connect(address).await?;
            let transport = serde_transport::new(framed(stream)?, Bincode::default());
            let client = EchoClient::new(client::Config::default(), transport).spawn();
            let call = move |request: Vec<u8>| {
                let (words, client) = (ByteBuf::from(request), client.clone());
                async move { Ok(client.answer(context::current(), words).await?) }
            };
            drive_tasks(load, call).await
        })
    }
}

fn framed(stream: TcpStream) -> std::io::Result<Framed<TcpStream, LengthDelimitedCodec>> {
    stream.set_nodelay(true)?;
    Ok(Framed::new(stream, LengthDelimitedCodec::new()))
}
