//! The document store beside bare calls of its engine, on the same vectors in the same run.
//!
//! `cargo run --example store_bench -p loupe-engine [--profile release] -- [points] [queries]`
//!
//! Prints ingest rates, search p50 and p99 (no filter, a filter that keeps 2 %) and recall against brute force; the
//! ratios hold on a busy machine, the rates do not.

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
use serde_json::json;

const DIMS: usize = 384;
const TOP: usize = 10;
const BATCH: usize = 256;

fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<usize>());
    let points = numbers.next().transpose()?.unwrap_or(20_000);
    let queries = numbers.next().transpose()?.unwrap_or(300);
    let world = World::new(points, queries);
    let dir = std::env::temp_dir().join(format!("loupe-store-bench-{}", std::process::id()));
    let bare = bare(&world, &dir.join("bare"))?;
    let ours = tokio::runtime::Runtime::new()?.block_on(ours(&world, &dir.join("ours")))?;
    std::fs::remove_dir_all(&dir)?;
    println!("{points} x {DIMS}, top {TOP}, {queries} queries");
    for (name, run) in [("bare", &bare), ("store", &ours)] {
        let [p50, p99] = run.plain.percentiles();
        let [f50, f99] = run.filtered.percentiles();
        println!(
            "{name:5} ingest {:8.0}/s  index {:6.1} s  search p50 {p50:?} p99 {p99:?} recall {:.4}  2 % p50 {f50:?} \
             p99 {f99:?} recall {:.4}",
            points as f64 / run.ingest.as_secs_f64(),
            run.index.as_secs_f64(),
            run.plain.recall,
            run.filtered.recall,
        );
    }
    let ratio = |ours: Duration, bare: Duration| ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "ratio store/bare: ingest time {:.2}, search p50 {:.2}, filtered p50 {:.2}; filtered/unfiltered {:.2}",
        ratio(ours.ingest, bare.ingest),
        ratio(ours.plain.percentiles()[0], bare.plain.percentiles()[0]),
        ratio(
            ours.filtered.percentiles()[0],
            bare.filtered.percentiles()[0]
        ),
        ratio(ours.filtered.percentiles()[0], ours.plain.percentiles()[0]),
    );
    Ok(())
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

    fn id(place: usize) -> String {
        document_id("col", "bench", &place.to_string())
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
    recall: f64,
}

impl Searches {
    fn note(
        &mut self,
        world: &World,
        query: &[f32],
        filtered: bool,
        time: Duration,
        found: &[String],
    ) {
        self.times.push(time);
        let exact = world.exact(query, filtered);
        let hits = exact
            .iter()
            .filter(|place| found.contains(&World::id(**place)))
            .count();
        self.recall += hits as f64 / (exact.len() * world.queries.len()) as f64;
    }

    fn percentiles(&self) -> [Duration; 2] {
        let mut times = self.times.clone();
        times.sort();
        [times[times.len() / 2], times[times.len() * 99 / 100]]
    }
}

struct Run {
    ingest: Duration,
    index: Duration,
    plain: Searches,
    filtered: Searches,
}

fn bare(world: &World, dir: &std::path::Path) -> anyhow::Result<Run> {
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
    let path = |text: &str| {
        text.parse::<q::JsonPath>()
            .map_err(|()| anyhow::anyhow!("not a path"))
    };
    let create = q::CreateIndex {
        field_name: path("group")?,
        field_schema: Some(serde_json::from_value(json!("keyword"))?),
    };
    shard.update(q::UpdateOperation::FieldIndexOperation(
        q::FieldIndexOperations::CreateIndex(create),
    ))?;
    let start = Instant::now();
    let places: Vec<usize> = (0..world.vectors.len()).collect();
    for batch in places.chunks(BATCH) {
        let points = batch
            .iter()
            .map(|&place| {
                let id = World::id(place)
                    .trim_start_matches("doc_")
                    .parse::<uuid::Uuid>()?;
                let vectors = q::Vectors::new_named([("text", world.vectors[place].clone())]);
                let payload =
                    json!({"group": World::group(place), "n": place, "title": "a passage of text"});
                Ok(q::PointStruct::new(q::PointId::Uuid(id), vectors, payload).into())
            })
            .collect::<anyhow::Result<_>>()?;
        let upsert = q::PointOperations::UpsertPoints(q::PointInsertOperations::PointsList(points));
        shard.update(q::UpdateOperation::PointOperation(upsert))?;
    }
    shard.flush()?;
    let ingest = start.elapsed();
    let start = Instant::now();
    shard.optimize()?;
    let index = start.elapsed();
    let mut run = Run {
        ingest,
        index,
        plain: Searches::default(),
        filtered: Searches::default(),
    };
    for filtered in [false, true] {
        for query in &world.queries {
            let start = Instant::now();
            let mut request = q::QueryRequest::new(TOP);
            let using = Some("text".to_owned());
            let nearest = q::NamedQuery {
                query: q::VectorInternal::Dense(query.clone()),
                using,
            };
            request.query = Some(q::ScoringQuery::Vector(q::QueryEnum::Nearest(nearest)));
            request.with_payload = q::WithPayloadInterface::Bool(true);
            let quantization = q::QuantizationSearchParams {
                ignore: false,
                rescore: Some(true),
                oversampling: Some(2.0),
            };
            request.params = Some(q::SearchParams {
                quantization: Some(quantization),
                ..Default::default()
            });
            if filtered {
                let group =
                    q::FieldCondition::new_match(path("group")?, q::Match::from(World::group(7)));
                request.filter = Some(q::Filter::new_must(q::Condition::Field(group)));
            }
            let hits = shard.query(request)?;
            let time = start.elapsed();
            let found: Vec<String> = hits
                .iter()
                .map(|h| format!("doc_{}", h.id.to_string().replace('-', "")))
                .collect();
            let searches = if filtered {
                &mut run.filtered
            } else {
                &mut run.plain
            };
            searches.note(world, query, filtered, time, &found);
        }
    }
    Ok(run)
}

async fn ours(world: &World, dir: &std::path::Path) -> anyhow::Result<Run> {
    // Indexes are built when asked for, so that the search is not measured while one is being built.
    let options = EdgeOptions {
        optimize_every: Duration::from_secs(3_600),
        free_space: std::sync::Arc::new(|_: &std::path::Path| {
            Ok(Space {
                free: 1 << 40,
                total: 1 << 40,
            })
        }),
        ..EdgeOptions::default()
    };
    let store = Edge::open(
        dir,
        EdgeOptions {
            deadline: Duration::from_secs(3_600),
            ..options
        },
    )?;
    let spec = CollectionSpec {
        namespace_id: "ns".to_owned(),
        collection_id: "col".to_owned(),
        vectors: vec![VectorSpec {
            name: "text".to_owned(),
            dims: DIMS,
            distance: Distance::Cosine,
        }],
    };
    let start = Instant::now();
    let places: Vec<usize> = (0..world.vectors.len()).collect();
    for batch in places.chunks(BATCH) {
        let documents = batch.iter().map(|&place| {
            let payload =
                json!({"group": World::group(place), "n": place, "title": "a passage of text"});
            Document {
                document_id: World::id(place),
                collection_id: "col".to_owned(),
                payload: payload.as_object().cloned().unwrap_or_default(),
                vectors: [("text".to_owned(), world.vectors[place].clone())].into(),
                keywords: None,
            }
        });
        store.upsert(&spec, documents.collect()).await?;
    }
    store.flush().await?;
    let ingest = start.elapsed();
    let start = Instant::now();
    store.optimize().await?;
    let index = start.elapsed();
    let reach = Reach {
        namespace_id: "ns".to_owned(),
        collection_ids: vec!["col".to_owned()],
        principal: None,
    };
    let mut run = Run {
        ingest,
        index,
        plain: Searches::default(),
        filtered: Searches::default(),
    };
    for filtered in [false, true] {
        for query in &world.queries {
            let start = Instant::now();
            let search = SearchQuery {
                ranking: Ranking::Nearest {
                    index: "text".to_owned(),
                    vector: query.clone(),
                },
                filter: filtered.then(|| Filter::eq("group", World::group(7))),
                limit: TOP,
                min_score: None,
                vectors: WithVectors::No,
            };
            let hits = store.search(&reach, search).await?;
            let time = start.elapsed();
            let found: Vec<String> = hits.into_iter().map(|h| h.document.document_id).collect();
            let searches = if filtered {
                &mut run.filtered
            } else {
                &mut run.plain
            };
            searches.note(world, query, filtered, time, &found);
        }
    }
    store.close().await?;
    Ok(run)
}
