//! The client of a kubeconfig, made of the parts that kube makes its own of, with buffered reads, and with
//! `TCP_NODELAY`, as Go sets it on every connection.
//!
//! Without it, the first request on a connection waits for the acknowledgement of the end of the TLS
//! handshake, which Linux delays by 40 ms.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder, ServiceExt as _};
use tower_http::decompression::DecompressionLayer;

use super::buffered::Buffered;

/// Builds the client. May run the credential plugin, and block.
///
/// # Errors
/// The configuration is invalid, or the plugin fails.
pub(super) fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // The connections of a proxy are kube's own.
        return Client::try_from(config);
    }
    let auth = config.auth_layer()?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tcp = tcp.map_response(Buffered::new);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let connections: legacy::Client<_, Body> =
        legacy::Builder::new(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new())
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(connections);
    Ok(Client::new(service, config.default_namespace))
}
