//! TLS. The files are read again when they change. Open connections keep their keys.

use crate::error::StartError;
use crate::listen::Protocol;
use crate::log::Log;
use crate::regular;
use crate::settings::Config;
use crate::watched::Watched;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// TLS of the protocols, if TLS is on.
pub(crate) struct Acceptors {
    http: Option<TlsAcceptor>,
    grpc: Option<TlsAcceptor>,
}

impl Acceptors {
    /// Reads the files of TLS, if the configuration names them.
    pub(crate) fn new(config: &Config, log: &Log) -> Result<Acceptors, StartError> {
        let files = config.tls().map_err(StartError::Settings)?;
        let offering = |protocols: &[&[u8]]| {
            let made = files.map(|(certificate, key)| acceptor(certificate, key, protocols, log));
            made.transpose().map_err(StartError::Files)
        };
        Ok(Acceptors { http: offering(&[b"h2", b"http/1.1"])?, grpc: offering(&[b"h2"])? })
    }

    /// Returns the acceptor of connections with a protocol.
    pub(crate) fn of(&self, speaks: Protocol) -> Option<TlsAcceptor> {
        if speaks == Protocol::Grpc { self.grpc.clone() } else { self.http.clone() }
    }
}

/// Makes the acceptor of connections. `protocols` are offered by ALPN, the preferred one first.
fn acceptor(certificate: &Path, key: &Path, protocols: &[&[u8]], log: &Log) -> Result<TlsAcceptor, String> {
    let key = Watched::new(vec![certificate.to_owned(), key.to_owned()], read, log)?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("TLS: {error}"))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(Key(key)));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

struct Key(Watched<CertifiedKey>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl ResolvesServerCert for Key {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.get())
    }
}

fn read(files: &[PathBuf]) -> Result<CertifiedKey, String> {
    let [certificate, key] = files else { return Err("TLS needs two files".to_owned()) };
    let named = |file: &PathBuf, error: &dyn std::fmt::Display| format!("TLS: {}: {error}", file.display());
    let read = |file: &PathBuf| regular::read(file, regular::USUAL).map_err(|e| named(file, &e));
    let text = read(certificate)?;
    let chain =
        CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>().map_err(|e| named(certificate, &e))?;
    if chain.is_empty() {
        return Err(named(certificate, &"there is no certificate in it; expected one in PEM"));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|e| named(key, &e))?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => named(key, &"the key is not that of the certificate"),
        error => named(key, &error),
    })
}
