//! The document store beside bare calls of its engine, on the same vectors in the same run.
//!
//! `cargo run --release --example store_bench -p loupe-engine -- [points] [queries] [neighbours]`
//!
//! Batches and queries go to the two in turn, so that a busy machine slows both alike: the ratios hold on one, the
//! rates do not. Prints the ingest, the build of the indexes (CPU of the process), searches before and after it, without
//! a filter and with one that keeps 2 %, and recall against brute force. With `neighbours`, as many documents of another
//! collection live in the same shard of the store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loupe_engine::filter::Filter;
use loupe_engine::store::edge::{Edge, EdgeOptions, Space};
use loupe_engine::store::{
    CollectionSpec, Distance, DocStore, Document, Ranking, Reach, SearchQuery, VectorSpec,
    WithVectors, document_id,
};
use qdrant_edge as q;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

/// The server's own: both run on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DIMS: usize = 384;
const TOP: usize = 10;
const BATCH: usize = 256;

fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<usize>());
    let points = numbers.next().transpose()?.unwrap_or(20_000);
    let queries = numbers.next().transpose()?.unwrap_or(300);
    let neighbours = numbers.next().transpose()?.unwrap_or(0);
    let world = World::new(points, queries);
    let dir = std::env::temp_dir().join(format!("loupe-store-bench-{}", std::process::id()));
    let runtime = tokio::runtime::Runtime::new()?;
    let bare = Bare::open(&dir.join("bare"))?;
    let ours = runtime.block_on(Ours::open(&dir.join("ours"), &world, neighbours))?;
    println!("{points} x {DIMS}, top {TOP}, {queries} queries, {neighbours} neighbours");

    let (mut bare_cost, mut our_cost) = (Cost::default(), Cost::default());
    let places: Vec<usize> = (0..points).collect();
    for batch in places.chunks(BATCH) {
        bare_cost.note(|| bare.write(&world, batch))?;
        our_cost.note(|| runtime.block_on(ours.write(&world, "col", batch)))?;
    }
    bare_cost.note(|| Ok(bare.shard.flush()?))?;
    our_cost.note(|| Ok(runtime.block_on(ours.store.flush())?))?;
    compare("ingest, wall", bare_cost.wall, our_cost.wall);
    compare("ingest, CPU", bare_cost.cpu, our_cost.cpu);

    search("before the index", &world, &bare, &ours, &runtime)?;
    let (mut bare_index, mut our_index) = (Cost::default(), Cost::default());
    bare_index.note(|| Ok(bare.shard.optimize().map(|_| ())?))?;
    our_index.note(|| Ok(runtime.block_on(ours.store.optimize())?))?;
    compare("index, CPU", bare_index.cpu, our_index.cpu);
    compare(
        "ingest and index, CPU",
        bare_cost.cpu + bare_index.cpu,
        our_cost.cpu + our_index.cpu,
    );
    search("with the index", &world, &bare, &ours, &runtime)?;
    runtime.block_on(ours.store.close())?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn compare(what: &str, bare: Duration, ours: Duration) {
    println!(
        "{what:44} bare {bare:10.3?}  store {ours:10.3?}  = {:.2}x",
        ours.as_secs_f64() / bare.as_secs_f64()
    );
}

/// Asks both in turn, the first of them in turn too.
fn search(
    when: &str,
    world: &World,
    bare: &Bare,
    ours: &Ours,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<()> {
    for (what, filtered) in [("no filter", false), ("2 %", true)] {
        let (mut theirs, mut own) = (Searches::default(), Searches::default());
        for (turn, query) in world.queries.iter().enumerate() {
            let exact = world.exact(query, filtered);
            let mut ask_bare = || theirs.note(&exact, || bare.search(query, filtered));
            let mut ask_ours =
                || own.note(&exact, || runtime.block_on(ours.search(query, filtered)));
            if turn % 2 == 0 {
                ask_bare()?;
                ask_ours()?;
            } else {
                ask_ours()?;
                ask_bare()?;
            }
        }
        let ([p50, p99], [own50, own99]) = (theirs.percentiles(), own.percentiles());
        compare(&format!("search {when}, {what}, p50"), p50, own50);
        compare(&format!("search {when}, {what}, p99"), p99, own99);
        compare(
            &format!("search {when}, {what}, CPU of all"),
            theirs.cpu,
            own.cpu,
        );
        println!(
            "{:44} bare {:10.4}  store {:10.4}",
            "  recall@10",
            theirs.recall(),
            own.recall()
        );
    }
    Ok(())
}

/// What calls took.
#[derive(Default)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

impl Cost {
    fn note(&mut self, call: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let (wall, cpu) = (Instant::now(), cpu());
        call()?;
        self.cpu += self::cpu().saturating_sub(cpu);
        self.wall += wall.elapsed();
        Ok(())
    }
}

/// CPU time of the whole process.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Clustered unit vectors, as texts give them; uniform ones would have no neighbours to find.
struct World {
    vectors: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
}

impl World {
    fn new(points: usize, queries: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let centres: Vec<Vec<f32>> = (0..200).map(|_| noise(&mut rng, 1.0)).collect();
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| {
                    let centre = &centres[rng.random_range(0..centres.len())];
                    let noise = noise(&mut rng, 0.8);
                    unit(centre.iter().zip(noise).map(|(c, n)| c + n).collect())
                })
                .collect()
        };
        Self {
            vectors: draw(points),
            queries: draw(queries),
        }
    }

    fn group(place: usize) -> String {
        format!("g{}", place % 50)
    }

    /// Places of the nearest by brute force.
    fn exact(&self, query: &[f32], filtered: bool) -> Vec<usize> {
        let mut scored: Vec<(f32, usize)> = self
            .vectors
            .iter()
            .enumerate()
            .filter(|(place, _)| !filtered || place % 50 == 7)
            .map(|(place, vector)| (vector.iter().zip(query).map(|(a, b)| a * b).sum(), place))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored
            .into_iter()
            .take(TOP)
            .map(|(_, place)| place)
            .collect()
    }

    fn payload(place: usize) -> Value {
        json!({"group": World::group(place), "n": place, "title": "a passage of text"})
    }

    fn id(collection: &str, place: usize) -> String {
        document_id(collection, "bench", &place.to_string())
    }
}

fn noise(rng: &mut StdRng, scale: f32) -> Vec<f32> {
    (0..DIMS).map(|_| rng.random_range(-scale..scale)).collect()
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / norm).collect()
}

#[derive(Default)]
struct Searches {
    times: Vec<Duration>,
    cpu: Duration,
    found: usize,
    wanted: usize,
}

impl Searches {
    fn note(
        &mut self,
        exact: &[usize],
        search: impl FnOnce() -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<()> {
        let (start, cpu) = (Instant::now(), cpu());
        let found = search()?;
        self.times.push(start.elapsed());
        self.cpu += self::cpu().saturating_sub(cpu);
        let is_found = |place: &&usize| found.contains(&World::id("col", **place));
        self.found += exact.iter().filter(is_found).count();
        self.wanted += exact.len();
        Ok(())
    }

    fn recall(&self) -> f64 {
        self.found as f64 / self.wanted as f64
    }

    fn percentiles(&self) -> [Duration; 2] {
        let mut times = self.times.clone();
        times.sort();
        [times[times.len() / 2], times[times.len() * 99 / 100]]
    }
}

/// The engine as it is, with an index on the one field that is filtered by.
struct Bare {
    shard: q::EdgeShard,
}

impl Bare {
    fn open(dir: &Path) -> anyhow::Result<Self> {
        let quantization: q::QuantizationConfig =
            serde_json::from_value(json!({"scalar": {"type": "int8", "quantile": 0.99}}))?;
        let vector = q::EdgeVectorParams::builder(DIMS, q::Distance::Cosine)
            .quantization_config(quantization)
            .build();
        let config = q::EdgeConfig::builder()
            .max_search_threads(1)
            .vector("text", vector)
            .build();
        let shard = q::EdgeShard::new(dir, config)?;
        let create = q::CreateIndex {
            field_name: path("group")?,
            field_schema: Some(serde_json::from_value(json!("keyword"))?),
        };
        shard.update(q::UpdateOperation::FieldIndexOperation(
            q::FieldIndexOperations::CreateIndex(create),
        ))?;
        Ok(Self { shard })
    }

    fn write(&self, world: &World, batch: &[usize]) -> anyhow::Result<()> {
        let points = batch
            .iter()
            .map(|&place| {
                let id = World::id("col", place)
                    .trim_start_matches("doc_")
                    .parse::<uuid::Uuid>()?;
                let vectors = q::Vectors::new_named([("text", world.vectors[place].clone())]);
                let payload = World::payload(place);
                Ok(q::PointStruct::new(q::PointId::Uuid(id), vectors, payload).into())
            })
            .collect::<anyhow::Result<_>>()?;
        let upsert = q::PointOperations::UpsertPoints(q::PointInsertOperations::PointsList(points));
        self.shard
            .update(q::UpdateOperation::PointOperation(upsert))?;
        Ok(())
    }

    fn search(&self, query: &[f32], filtered: bool) -> anyhow::Result<Vec<String>> {
        let mut request = q::QueryRequest::new(TOP);
        let nearest = q::NamedQuery {
            query: q::VectorInternal::Dense(query.to_vec()),
            using: Some("text".to_owned()),
        };
        request.query = Some(q::ScoringQuery::Vector(q::QueryEnum::Nearest(nearest)));
        request.with_payload = q::WithPayloadInterface::Bool(true);
        request.params = Some(q::SearchParams {
            quantization: Some(q::QuantizationSearchParams {
                ignore: false,
                rescore: Some(true),
                oversampling: Some(2.0),
            }),
            ..Default::default()
        });
        if filtered {
            let group =
                q::FieldCondition::new_match(path("group")?, q::Match::from(World::group(7)));
            request.filter = Some(q::Filter::new_must(q::Condition::Field(group)));
        }
        let hits = self.shard.query(request)?;
        Ok(hits
            .iter()
            .map(|hit| format!("doc_{}", hit.id.to_string().replace('-', "")))
            .collect())
    }
}

fn path(text: &str) -> anyhow::Result<q::JsonPath> {
    text.parse().map_err(|()| anyhow::anyhow!("not a path"))
}

/// The document store.
struct Ours {
    store: Edge,
}

impl Ours {
    async fn open(dir: &Path, world: &World, neighbours: usize) -> anyhow::Result<Self> {
        // Indexes are built when asked for, so that the search is not measured while one is being built.
        let options = EdgeOptions {
            optimize_every: Duration::from_secs(3_600),
            flush_every: Duration::from_secs(3_600),
            deadline: Duration::from_secs(3_600),
            free_space: Arc::new(|_: &Path| {
                Ok(Space {
                    free: 1 << 40,
                    total: 1 << 40,
                })
            }),
            ..EdgeOptions::default()
        };
        let ours = Self {
            store: Edge::open(dir, options)?,
        };
        let places: Vec<usize> = (0..neighbours).map(|n| n % world.vectors.len()).collect();
        for batch in places.chunks(BATCH) {
            ours.write(world, "neighbour", batch).await?;
        }
        Ok(ours)
    }

    async fn write(&self, world: &World, collection: &str, batch: &[usize]) -> anyhow::Result<()> {
        let spec = CollectionSpec {
            namespace_id: "ns".to_owned(),
            collection_id: collection.to_owned(),
            vectors: vec![VectorSpec {
                name: "text".to_owned(),
                dims: DIMS,
                distance: Distance::Cosine,
            }],
        };
        let documents = batch.iter().map(|&place| Document {
            document_id: World::id(collection, place),
            collection_id: collection.to_owned(),
            payload: match World::payload(place) {
                Value::Object(payload) => payload.into(),
                _ => Default::default(),
            },
            vectors: [("text".to_owned(), world.vectors[place].clone())].into(),
            keywords: None,
        });
        self.store.upsert(&spec, documents.collect()).await?;
        Ok(())
    }

    async fn search(&self, query: &[f32], filtered: bool) -> anyhow::Result<Vec<String>> {
        let reach = Reach {
            namespace_id: "ns".to_owned(),
            collection_ids: vec!["col".to_owned()],
            principal: None,
        };
        let search = SearchQuery {
            ranking: Ranking::Nearest {
                index: "text".to_owned(),
                vector: query.to_vec(),
            },
            filter: filtered.then(|| Filter::eq("group", World::group(7))),
            limit: TOP,
            min_score: None,
            vectors: WithVectors::No,
        };
        let hits = self.store.search(&reach, search).await?;
        Ok(hits.into_iter().map(|h| h.document.document_id).collect())
    }
}
