//! TLS before the hub: what comes is unpacked and handed on, so that faults stay a matter of single bytes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// Where the hub and the host of the bytes are reached by TLS.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) hub: u16,
    pub(super) content: u16,
}

/// A front of two hosts, what runs it, and the certificate of the authority that vouches for both, as PEM.
pub(super) fn start(hub: SocketAddr, content: SocketAddr) -> (Front, Runtime, String) {
    let (config, authority) = identity();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listen = |to| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        runtime.spawn(accept(listener, acceptor.clone(), to));
        port
    };
    let front = Front {
        hub: listen(hub),
        content: listen(content),
    };
    (front, runtime, authority)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, to: SocketAddr) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that does not trust the certificate hangs up here.
            let (Ok(mut outer), Ok(mut inner)) = tokio::join!(acceptor.accept(stream), TcpStream::connect(to)) else {
                return;
            };
            // However it ends, the client sees that it did.
            let _ = copy_bidirectional(&mut outer, &mut inner).await;
        });
    }
}

/// A certificate for both hosts, and its authority's.
fn identity() -> (ServerConfig, String) {
    let day = Duration::from_secs(24 * 60 * 60);
    let valid = |mut params: CertificateParams| {
        params.not_before = (SystemTime::now() - day).into();
        params.not_after = (SystemTime::now() + 30 * day).into();
        params
    };
    let mut params = valid(CertificateParams::new(Vec::new()).unwrap());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();

    let names = ["127.0.0.1", "localhost"].map(str::to_owned);
    let mut params = valid(CertificateParams::new(names).unwrap());
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();

    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.into()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    (config, authority.pem())
}
