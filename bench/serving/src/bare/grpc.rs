//! Bare tonic.

use frazil_wire::proto::id_service_server::{IdService, IdServiceServer};
use frazil_wire::proto::{
    DecodeRequest, DecodeResponse, IdBatch, InfoRequest, InfoResponse, NextRequest, NextResponse,
    StreamRequest,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, Streaming};

use crate::Outcome;

pub(super) async fn serve(listener: TcpListener) -> Outcome {
    let service = IdServiceServer::new(Constant);
    let server = tonic::transport::Server::builder().add_service(service);
    Ok(server.serve_with_incoming(TcpListenerStream::new(listener)).await?)
}

/// Answers one ID, always the same.
struct Constant;

#[tonic::async_trait]
impl IdService for Constant {
    type StreamStream = tokio_stream::Empty<Result<IdBatch, Status>>;

    async fn next(&self, _: Request<NextRequest>) -> Result<Response<NextResponse>, Status> {
        Ok(Response::new(NextResponse { ids: vec![380_380_940_129_046_528], ..Default::default() }))
    }

    async fn stream(
        &self,
        _: Request<Streaming<StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        Err(Status::unimplemented("a bare handler has no streams"))
    }

    async fn decode(&self, _: Request<DecodeRequest>) -> Result<Response<DecodeResponse>, Status> {
        Err(Status::unimplemented("a bare handler takes nothing apart"))
    }

    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        Err(Status::unimplemented("a bare handler has nothing to tell"))
    }
}
