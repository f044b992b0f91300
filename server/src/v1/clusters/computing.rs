//! The computing of an execution, off the async runtime and stopped when nobody waits for it.

use std::{collections::HashMap, time::Duration};

use loupe_engine::cluster::{self, Algorithm, Clustering, NOISE, Quality, Settings, Stop, Stopped};
use loupe_wire::{ClusterExecutionMode, ClusterModel, ClusterType};

use super::{
    reading::Gathered,
    settings,
    store::{self, Run},
};
use crate::{
    app::App,
    error::{ApiError, Result},
};

/// Clusters of one execution, the largest; what is in others is in none.
const MAX_CLUSTERS: usize = 1_000;
/// How often it is asked whether the execution was canceled.
const LOOK: Duration = Duration::from_millis(500);

/// What was computed.
pub struct Computed {
    pub gathered: Gathered,
    pub found: Clustering,
    pub quality: Quality,
    /// Where each point is in the picture; none of a cluster by attributes.
    pub picture: Vec<Vec<f32>>,
    /// Which way the points were gathered.
    pub algorithm: &'static str,
    pub finds_noise: bool,
    /// What the answer has to say of how it was made.
    pub said: Vec<String>,
}

/// What is to be computed.
pub struct Job {
    pub gathered: Gathered,
    pub how: How,
    /// 2 or 3; none: no picture.
    pub dims: Option<usize>,
}

pub enum How {
    Attributes,
    Vectors {
        settings: Settings,
        auto: bool,
        most: Option<usize>,
    },
    /// To the clusters of an execution before, where points are that like one.
    Assign {
        centroids: Vec<Vec<f32>>,
        least: f64,
    },
}

impl How {
    /// # Errors
    /// There is no execution before whose clusters documents could be assigned to.
    pub fn of(model: &ClusterModel, run: &Run, before: Option<Vec<Vec<f32>>>) -> Result<Self> {
        if run.request.mode == ClusterExecutionMode::Assign {
            let Some(centroids) = before.filter(|list| !list.is_empty()) else {
                let message = "there are no clusters to assign documents to: execute in full first";
                return Err(ApiError::bad_request("", message));
            };
            let least = run.request.assignment_threshold;
            return Ok(Self::Assign { centroids, least });
        }
        match (model.cluster_type, &model.vector_config) {
            (ClusterType::Vector, Some(vectors)) => {
                let (settings, auto) = settings::settings(vectors)?;
                let most = run.request.sample_size.or(vectors.sample_size);
                let most = most.and_then(|most| usize::try_from(most).ok());
                Ok(Self::Vectors {
                    settings,
                    auto,
                    most,
                })
            }
            _ => Ok(Self::Attributes),
        }
    }
}

/// Stops the computing when whoever waits for it is dropped.
struct Guard(Stop);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Computes; nothing when the execution was canceled meanwhile.
///
/// # Errors
/// The database does not answer, or the computing fell over.
pub async fn compute(
    app: &App,
    namespace_id: &str,
    run: &Run,
    job: Job,
) -> Result<Option<Computed>> {
    let stop = Stop::default();
    let guard = Guard(stop.clone());
    let work = tokio::task::spawn_blocking(move || computed(job, &stop));
    let canceled = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let (cluster_id, run_id) = (&run.result.cluster_id, &run.result.run_id);
            match store::find(app.db(), namespace_id, cluster_id, run_id).await {
                Ok(now) if now.is_active() => {}
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    };
    let done = tokio::select! {
        done = work => done.map_err(ApiError::internal)?.ok(),
        canceled = canceled => {
            canceled?;
            None
        }
    };
    drop(guard);
    Ok(done)
}

fn computed(job: Job, stop: &Stop) -> Result<Computed, Stopped> {
    let Job {
        gathered,
        how,
        dims,
    } = job;
    let mut said = Vec::new();
    let (mut found, algorithm, finds_noise) = match how {
        How::Attributes => (by_attributes(&gathered), "attribute_based", false),
        How::Assign { centroids, least } => {
            let found = cluster::assigned(&gathered.vectors, &centroids, least);
            (found, "assign", true)
        }
        How::Vectors {
            settings,
            auto,
            most,
        } => {
            let (found, used) = by_vectors(&gathered.vectors, settings, auto, most, stop)?;
            if found.compared < gathered.vectors.len() {
                said.push(format!(
                    "{} of {} vectors, chosen by chance, were compared; the others are in the cluster nearest to them",
                    found.compared,
                    gathered.vectors.len()
                ));
            }
            (found, used.name(), used.finds_noise())
        }
    };
    if found.clusters.len() > MAX_CLUSTERS {
        said.push(format!(
            "only the {MAX_CLUSTERS} largest of {} clusters are kept",
            found.clusters.len()
        ));
        keep_largest(&mut found);
    }
    let quality = match gathered.vectors.is_empty() {
        true => cluster::quality(&nowhere(&gathered), &found),
        false => cluster::quality(&gathered.vectors, &found),
    };
    let picture = match dims {
        Some(dims) => cluster::project(&gathered.vectors, dims, stop)?,
        None => Vec::new(),
    };
    Ok(Computed {
        gathered,
        found,
        quality,
        picture,
        algorithm,
        finds_noise,
        said,
    })
}

/// As asked; `auto` gathers by density, and into a number of groups where density finds no groups or leaves most out.
fn by_vectors(
    points: &[Vec<f32>],
    settings: Settings,
    auto: bool,
    most: Option<usize>,
    stop: &Stop,
) -> Result<(Clustering, Algorithm), Stopped> {
    let found = cluster::cluster(points, &settings, most, stop)?;
    let out = found.labels.iter().filter(|label| **label == NOISE).count();
    if !auto || (found.clusters.len() > 1 && out * 2 <= points.len()) {
        return Ok((found, settings.algorithm));
    }
    let instead = Settings {
        clusters: None,
        starts: 4,
        rounds: 100,
        seed: settings.seed,
        ..Settings::new(Algorithm::Kmeans)
    };
    Ok((
        cluster::cluster(points, &instead, most, stop)?,
        Algorithm::Kmeans,
    ))
}

/// Documents with the same values are one cluster; those without any are in none.
fn by_attributes(gathered: &Gathered) -> Clustering {
    let mut known: HashMap<&[String], i32> = HashMap::new();
    let labels = gathered.points.iter().map(|point| {
        if point.attributes.iter().all(String::is_empty) {
            return NOISE;
        }
        let next = i32::try_from(known.len()).unwrap_or(i32::MAX);
        *known.entry(&point.attributes).or_insert(next)
    });
    let labels = labels.collect();
    cluster::gathered(&nowhere(gathered), labels, gathered.points.len())
}

/// Points of documents that have no vectors.
fn nowhere(gathered: &Gathered) -> Vec<Vec<f32>> {
    vec![Vec::new(); gathered.points.len()]
}

fn keep_largest(found: &mut Clustering) {
    found.clusters.truncate(MAX_CLUSTERS);
    let most = i32::try_from(MAX_CLUSTERS).unwrap_or(i32::MAX);
    for label in &mut found.labels {
        if *label >= most {
            *label = NOISE;
        }
    }
}
