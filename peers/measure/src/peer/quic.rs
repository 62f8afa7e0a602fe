//! QUIC by quinn: one connection with large windows and socket buffers, a bidirectional stream for
//! each call, and a task for each stream. Fair shares among streams are off, because many small
//! streams do not need them. It is the only peer that encrypts, because QUIC always does. Its
//! packets have the size of a usual network: with 16 KiB, which the loopback interface takes, large
//! messages lose packets and are slower.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

use anyhow::Context;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};

use super::{LARGEST, Peer, drive_tasks, roomy, runtime};
use crate::load::Load;
use crate::work;

/// The name that the certificate is for.
const HOST: &str = "localhost";

/// Bytes that may be in flight.
const WINDOW: u32 = 16 << 20;

/// Streams that a client may have open.
const STREAMS: u32 = 1024;

/// quinn.
pub(crate) struct Quic;

impl Peer for Quic {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let made = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
            let certificate = made.cert.der().clone();
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let chain = vec![certificate.clone()];
            let mut config = ServerConfig::with_single_cert(chain, key.into())?;
            config.transport_config(transport());
            let endpoint = endpoint(Some(config))?;
            ready(&format!("{} {}", endpoint.local_addr()?, hex(&certificate)))?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve_connection(incoming.await?));
            }
            Ok(())
        })
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let told = "the address has no certificate after it";
            let (address, certificate) = address.split_once(' ').context(told)?;
            let certificate = CertificateDer::from(unhex(certificate).context(told)?);
            let mut roots = RootCertStore::empty();
            roots.add(certificate)?;
            let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
            config.transport_config(transport());
            let mut endpoint = endpoint(None)?;
            endpoint.set_default_client_config(config);
            let connection = endpoint.connect(address.parse()?, HOST)?.await?;
            let calls = connection.clone();
            let call = move |request: Vec<u8>| {
                let connection = calls.clone();
                async move {
                    let (mut send, mut receive) = connection.open_bi().await?;
                    send.write_chunk(request.into()).await?;
                    send.finish()?;
                    Ok(receive.read_to_end(LARGEST).await?)
                }
            };
            drive_tasks(load, call).await?;
            connection.close(VarInt::from_u32(0), b"enough");
            endpoint.wait_idle().await;
            Ok(())
        })
    }
}

/// Answers every stream until the client closes the connection.
async fn serve_connection(connection: Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A broken stream ends one call; its client reports the error.
        tokio::spawn(serve_stream(send, receive));
    }
}

async fn serve_stream(mut send: SendStream, mut receive: RecvStream) -> anyhow::Result<()> {
    let request = receive.read_to_end(LARGEST).await?;
    let mut response = vec![0; request.len()];
    work::answer(&request, &mut response);
    send.write_chunk(response.into()).await?;
    send.finish()?;
    Ok(())
}

fn endpoint(server: Option<ServerConfig>) -> std::io::Result<Endpoint> {
    let socket = roomy(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)?;
    let config = EndpointConfig::default();
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime))
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .send_fairness(false)
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW));
    Arc::new(transport)
}

/// The certificate as text. The client gets it with the address.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
