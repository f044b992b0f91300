//! A Qdrant server in this process: the calls of its gRPC interface that we make, answered by shards of the embedded
//! engine. Every other call is refused, so that a new one is noticed.

mod convert;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use qdrant_client::qdrant as p;
use qdrant_client::qdrant::collections_server::{Collections, CollectionsServer};
use qdrant_client::qdrant::points_server::{Points, PointsServer};
use qdrant_edge as q;
use serde_json::json;
use tonic::{Request, Response, Status};

use self::convert::{
    filter, id, id_out, path, payload_out, point, record, vectors_out, with_payload, with_vectors,
};

type Answer<T> = Result<Response<T>, Status>;

/// What the server holds.
pub struct State {
    dir: PathBuf,
    collections: Mutex<HashMap<String, (p::CreateCollection, Arc<q::EdgeShard>)>>,
}

#[derive(Clone)]
struct Handlers(Arc<State>);

/// Serves until the task is aborted.
pub async fn serve(dir: PathBuf) -> (String, Arc<State>, tokio::task::JoinHandle<()>) {
    let state = Arc::new(State {
        dir,
        collections: Mutex::default(),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let handlers = Handlers(state.clone());
    let router = tonic::transport::Server::builder()
        .add_service(PointsServer::new(handlers.clone()).max_decoding_message_size(64 << 20))
        .add_service(CollectionsServer::new(handlers));
    let task = tokio::spawn(async move {
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        router.serve_with_incoming(incoming).await.unwrap();
    });
    (url, state, task)
}

impl State {
    /// Closes every shard, as a server does that is stopped.
    pub fn stop(&self) -> HashMap<String, p::CreateCollection> {
        let collections = std::mem::take(&mut *self.collections.lock().unwrap());
        collections
            .into_iter()
            .map(|(name, (create, _))| (name, create))
            .collect()
    }

    /// Opens the shards of a server that was stopped.
    pub fn start(&self, collections: HashMap<String, p::CreateCollection>) {
        for (name, create) in collections {
            let shard = q::EdgeShard::load(&self.dir.join(&name), None).unwrap();
            self.collections
                .lock()
                .unwrap()
                .insert(name, (create, Arc::new(shard)));
        }
    }
}

impl Handlers {
    fn shard(&self, name: &str) -> Result<Arc<q::EdgeShard>, Status> {
        let collections = self.0.collections.lock().unwrap();
        collections
            .get(name)
            .map(|(_, shard)| shard.clone())
            .ok_or_else(|| Status::not_found(name.to_owned()))
    }
}

fn failed(error: q::OperationError) -> Status {
    Status::invalid_argument(error.to_string())
}

fn updated(
    shard: &q::EdgeShard,
    operation: q::UpdateOperation,
) -> Answer<p::PointsOperationResponse> {
    shard.update(operation).map_err(failed)?;
    Ok(Response::new(p::PointsOperationResponse::default()))
}

/// Methods as the trait's attribute would write them: it does not see into a macro.
macro_rules! refused {
    ($($name:ident: $request:ident -> $response:ident),* $(,)?) => {
        $(fn $name<'a, 'b>(
            &'a self,
            _: Request<p::$request>,
        ) -> Pin<Box<dyn Future<Output = Answer<p::$response>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($name))) })
        })*
    };
}

#[tonic::async_trait]
impl Points for Handlers {
    async fn upsert(
        &self,
        request: Request<p::UpsertPoints>,
    ) -> Answer<p::PointsOperationResponse> {
        let request = request.into_inner();
        let points = request.points.into_iter().map(point).collect();
        let upsert = q::PointOperations::UpsertPoints(q::PointInsertOperations::PointsList(points));
        updated(
            &*self.shard(&request.collection_name)?,
            q::UpdateOperation::PointOperation(upsert),
        )
    }

    async fn delete(
        &self,
        request: Request<p::DeletePoints>,
    ) -> Answer<p::PointsOperationResponse> {
        let request = request.into_inner();
        let selector = request
            .points
            .and_then(|points| points.points_selector_one_of);
        let Some(p::points_selector::PointsSelectorOneOf::Filter(by)) = selector else {
            return Err(Status::unimplemented("a selector that is no filter"));
        };
        let delete = q::PointOperations::DeletePointsByFilter(filter(by));
        updated(
            &*self.shard(&request.collection_name)?,
            q::UpdateOperation::PointOperation(delete),
        )
    }

    async fn get(&self, request: Request<p::GetPoints>) -> Answer<p::GetResponse> {
        let request = request.into_inner();
        let mut read = q::RetrieveRequest::new(request.ids.into_iter().map(id).collect());
        read.with_payload = Some(with_payload(request.with_payload));
        read.with_vector = Some(with_vectors(request.with_vectors));
        let found = self
            .shard(&request.collection_name)?
            .retrieve(read)
            .map_err(failed)?;
        Ok(Response::new(p::GetResponse {
            result: found.into_iter().map(record).collect(),
            ..Default::default()
        }))
    }

    async fn scroll(&self, request: Request<p::ScrollPoints>) -> Answer<p::ScrollResponse> {
        let request = request.into_inner();
        let mut read = q::ScrollRequest::new();
        read.offset = request.offset.map(id);
        read.limit = request.limit.map(|limit| limit as usize);
        read.filter = request.filter.map(filter);
        read.with_payload = Some(with_payload(request.with_payload));
        read.with_vector = with_vectors(request.with_vectors);
        let (found, _) = self
            .shard(&request.collection_name)?
            .scroll(read)
            .map_err(failed)?;
        Ok(Response::new(p::ScrollResponse {
            result: found.into_iter().map(record).collect(),
            ..Default::default()
        }))
    }

    async fn count(&self, request: Request<p::CountPoints>) -> Answer<p::CountResponse> {
        let request = request.into_inner();
        let read = q::CountRequest {
            filter: request.filter.map(filter),
            exact: request.exact.unwrap_or(true),
        };
        let count = self
            .shard(&request.collection_name)?
            .count(read)
            .map_err(failed)? as u64;
        Ok(Response::new(p::CountResponse {
            result: Some(p::CountResult { count }),
            ..Default::default()
        }))
    }

    async fn query(&self, request: Request<p::QueryPoints>) -> Answer<p::QueryResponse> {
        let request = request.into_inner();
        let shard = self.shard(&request.collection_name)?;
        let using = request.using.unwrap_or_default();
        let mut read = q::QueryRequest::new(request.limit.unwrap_or(10) as usize);
        let mut params = q::SearchParams::default();
        let corpus = request
            .params
            .and_then(|params| params.idf)
            .and_then(|idf| idf.corpus);
        params.idf = corpus.map(|corpus| {
            q::IdfParams::Corpus(q::IdfCorpusParams {
                corpus: filter(corpus),
            })
        });
        read.params = Some(params);
        read.query = Some(match request.query.and_then(|query| query.variant) {
            Some(p::query::Variant::Text(text)) => {
                q::TextQueryBuilder::new(path(&using), text.query).build()
            }
            Some(p::query::Variant::Nearest(p::VectorInput {
                variant: Some(p::vector_input::Variant::Dense(dense)),
            })) => {
                let query = q::VectorInternal::Dense(dense.data);
                q::ScoringQuery::Vector(q::QueryEnum::Nearest(q::NamedQuery {
                    query,
                    using: Some(using),
                }))
            }
            _ => return Err(Status::unimplemented("that query")),
        });
        read.filter = request.filter.map(filter);
        read.with_payload = with_payload(request.with_payload);
        read.with_vector = with_vectors(request.with_vectors);
        let found = shard.query(read).map_err(failed)?;
        let hit = |hit: q::ScoredPoint| p::ScoredPoint {
            id: Some(id_out(hit.id)),
            payload: payload_out(hit.payload),
            score: hit.score,
            vectors: vectors_out(hit.vector),
            ..Default::default()
        };
        Ok(Response::new(p::QueryResponse {
            result: found.into_iter().map(hit).collect(),
            ..Default::default()
        }))
    }

    async fn create_field_index(
        &self,
        request: Request<p::CreateFieldIndexCollection>,
    ) -> Answer<p::PointsOperationResponse> {
        use p::payload_index_params::IndexParams;
        let request = request.into_inner();
        let schema = match request
            .field_index_params
            .and_then(|params| params.index_params)
        {
            Some(IndexParams::KeywordIndexParams(keyword)) => {
                json!({"type": "keyword", "is_tenant": keyword.is_tenant})
            }
            Some(IndexParams::IntegerIndexParams(integer)) => {
                json!({"type": "integer", "lookup": integer.lookup, "range": integer.range})
            }
            Some(IndexParams::BoolIndexParams(_)) => json!({"type": "bool"}),
            Some(IndexParams::TextIndexParams(text)) => {
                let tokenizer = text.tokenizer().as_str_name().to_lowercase();
                let stemmer = text.stemmer.and_then(|stemmer| stemmer.stemming_params);
                let Some(p::stemming_algorithm::StemmingParams::Snowball(snowball)) = stemmer
                else {
                    return Err(Status::unimplemented("that stemmer"));
                };
                json!({
                    "type": "text", "tokenizer": tokenizer, "lowercase": text.lowercase,
                    "ascii_folding": text.ascii_folding, "enable_hnsw": text.enable_hnsw,
                    "stemmer": {"type": "snowball", "language": snowball.language},
                    "scoring": text.scoring.map(|_| json!({"type": "bm25"})),
                })
            }
            _ => return Err(Status::unimplemented("that index")),
        };
        let schema = serde_json::from_value(schema)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let create = q::CreateIndex {
            field_name: path(&request.field_name),
            field_schema: Some(schema),
        };
        let operation =
            q::UpdateOperation::FieldIndexOperation(q::FieldIndexOperations::CreateIndex(create));
        updated(&*self.shard(&request.collection_name)?, operation)
    }

    refused! {
        update_vectors: UpdatePointVectors -> PointsOperationResponse,
        delete_vectors: DeletePointVectors -> PointsOperationResponse,
        set_payload: SetPayloadPoints -> PointsOperationResponse,
        overwrite_payload: SetPayloadPoints -> PointsOperationResponse,
        delete_payload: DeletePayloadPoints -> PointsOperationResponse,
        clear_payload: ClearPayloadPoints -> PointsOperationResponse,
        delete_field_index: DeleteFieldIndexCollection -> PointsOperationResponse,
        create_vector_name: CreateVectorNameRequest -> PointsOperationResponse,
        delete_vector_name: DeleteVectorNameRequest -> PointsOperationResponse,
        search: SearchPoints -> SearchResponse,
        search_batch: SearchBatchPoints -> SearchBatchResponse,
        search_groups: SearchPointGroups -> SearchGroupsResponse,
        recommend: RecommendPoints -> RecommendResponse,
        recommend_batch: RecommendBatchPoints -> RecommendBatchResponse,
        recommend_groups: RecommendPointGroups -> RecommendGroupsResponse,
        discover: DiscoverPoints -> DiscoverResponse,
        discover_batch: DiscoverBatchPoints -> DiscoverBatchResponse,
        update_batch: UpdateBatchPoints -> UpdateBatchResponse,
        query_batch: QueryBatchPoints -> QueryBatchResponse,
        query_groups: QueryPointGroups -> QueryGroupsResponse,
        facet: FacetCounts -> FacetResponse,
        search_matrix_pairs: SearchMatrixPoints -> SearchMatrixPairsResponse,
        search_matrix_offsets: SearchMatrixPoints -> SearchMatrixOffsetsResponse,
    }
}

#[tonic::async_trait]
impl Collections for Handlers {
    async fn get(
        &self,
        request: Request<p::GetCollectionInfoRequest>,
    ) -> Answer<p::GetCollectionInfoResponse> {
        let name = request.into_inner().collection_name;
        let collections = self.0.collections.lock().unwrap();
        let (create, _) = collections
            .get(&name)
            .ok_or_else(|| Status::not_found(name))?;
        let config = p::CollectionConfig {
            metadata: create.metadata.clone(),
            ..Default::default()
        };
        let info = p::CollectionInfo {
            config: Some(config),
            ..Default::default()
        };
        Ok(Response::new(p::GetCollectionInfoResponse {
            result: Some(info),
            time: 0.0,
        }))
    }

    async fn list(
        &self,
        _: Request<p::ListCollectionsRequest>,
    ) -> Answer<p::ListCollectionsResponse> {
        let collections = self.0.collections.lock().unwrap();
        let collections = collections
            .keys()
            .map(|name| p::CollectionDescription { name: name.clone() })
            .collect();
        Ok(Response::new(p::ListCollectionsResponse {
            collections,
            time: 0.0,
        }))
    }

    async fn create(
        &self,
        request: Request<p::CreateCollection>,
    ) -> Answer<p::CollectionOperationResponse> {
        let create = request.into_inner();
        let mut config = q::EdgeConfig::builder().max_search_threads(1);
        let vectors = create
            .vectors_config
            .clone()
            .and_then(|vectors| vectors.config);
        if let Some(p::vectors_config::Config::ParamsMap(map)) = vectors {
            for (name, params) in map.map {
                let distance = match params.distance() {
                    p::Distance::Cosine => q::Distance::Cosine,
                    p::Distance::Dot => q::Distance::Dot,
                    p::Distance::Euclid => q::Distance::Euclid,
                    _ => return Err(Status::unimplemented("that distance")),
                };
                let params = q::EdgeVectorParams::builder(params.size as usize, distance).build();
                config = config.vector(name, params);
            }
        }
        let name = create.collection_name.clone();
        let shard = q::EdgeShard::new(&self.0.dir.join(&name), config.build()).map_err(failed)?;
        self.0
            .collections
            .lock()
            .unwrap()
            .insert(name, (create, Arc::new(shard)));
        Ok(Response::new(p::CollectionOperationResponse {
            result: true,
            time: 0.0,
        }))
    }

    async fn collection_exists(
        &self,
        request: Request<p::CollectionExistsRequest>,
    ) -> Answer<p::CollectionExistsResponse> {
        let exists = self
            .0
            .collections
            .lock()
            .unwrap()
            .contains_key(&request.into_inner().collection_name);
        let result = Some(p::CollectionExists { exists });
        Ok(Response::new(p::CollectionExistsResponse {
            result,
            time: 0.0,
        }))
    }

    refused! {
        update: UpdateCollection -> CollectionOperationResponse,
        delete: DeleteCollection -> CollectionOperationResponse,
        update_aliases: ChangeAliases -> CollectionOperationResponse,
        list_collection_aliases: ListCollectionAliasesRequest -> ListAliasesResponse,
        list_aliases: ListAliasesRequest -> ListAliasesResponse,
        collection_cluster_info: CollectionClusterInfoRequest -> CollectionClusterInfoResponse,
        update_collection_cluster_setup: UpdateCollectionClusterSetupRequest -> UpdateCollectionClusterSetupResponse,
        create_shard_key: CreateShardKeyRequest -> CreateShardKeyResponse,
        delete_shard_key: DeleteShardKeyRequest -> DeleteShardKeyResponse,
        list_shard_keys: ListShardKeysRequest -> ListShardKeysResponse,
    }
}
