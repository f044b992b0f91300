//! The computing of an execution, off the async runtime and stopped when nobody waits for it.

use std::{collections::HashMap, time::Duration};

use loupe_engine::cluster::{
    self, Algorithm, Branch, Clustering, NOISE, Quality, Reduction, Settings, Stop, Stopped,
};
use loupe_wire::{ClusterExecutionMode, ClusterModel, ClusterType};

use super::{
    hierarchy,
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
    /// What lies around the clusters.
    pub branches: Vec<Branch>,
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
    /// Each value inside of the one before, where it is so.
    Attributes { nested: bool },
    Vectors {
        settings: Box<Settings>,
        auto: bool,
        most: Option<usize>,
        /// How deep clusters are divided: 1 not at all.
        depth: usize,
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
                let deepest = usize::try_from(vectors.max_hierarchy_depth).unwrap_or(1);
                Ok(Self::Vectors {
                    settings: Box::new(settings),
                    auto,
                    most,
                    depth: if vectors.hierarchical { deepest } else { 1 },
                })
            }
            _ => Ok(Self::Attributes {
                nested: (model.attribute_config.as_ref())
                    .is_some_and(|one| one.hierarchical_grouping),
            }),
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

/// Refuses what would be computed for ever.
fn check(job: &Job) -> Result<()> {
    let points = &job.gathered.vectors;
    if let How::Vectors { settings, most, .. } = &job.how
        && settings.is_too_wide(points, *most)
    {
        let width = points.first().map_or(0, Vec::len);
        let message = format!(
            "full covariances of {width} numbers are too many for so many Gaussians: set covariance_type to diag or spherical, ask for fewer n_components, or reduce the vectors first"
        );
        return Err(ApiError::bad_request("", message));
    }
    Ok(())
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
    check(&job)?;
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

/// What was found, and how.
struct Found {
    clusters: Clustering,
    algorithm: &'static str,
    finds_noise: bool,
    /// By point, the clusters around it from the outermost in, where clusters were divided.
    paths: Vec<Vec<i32>>,
    /// The settings that it was found by, of a cluster by vectors.
    settings: Option<Settings>,
    said: Vec<String>,
}

impl Found {
    const fn new(clusters: Clustering, algorithm: &'static str, finds_noise: bool) -> Self {
        Self {
            clusters,
            algorithm,
            finds_noise,
            paths: Vec::new(),
            settings: None,
            said: Vec::new(),
        }
    }
}

fn computed(job: Job, stop: &Stop) -> Result<Computed, Stopped> {
    let Job {
        gathered,
        how,
        dims,
    } = job;
    let nested = matches!(how, How::Attributes { nested: true });
    let mut found = find(&gathered, how, stop)?;
    if found.clusters.clusters.len() > MAX_CLUSTERS {
        found.said.push(format!(
            "only the {MAX_CLUSTERS} largest of {} clusters are kept",
            found.clusters.clusters.len()
        ));
        keep_largest(&mut found.clusters);
    }
    let branches = match nested {
        true => hierarchy::by_attributes(&found.clusters, &gathered.points),
        false => cluster::branches(&found.clusters, &found.paths),
    };
    let quality = match gathered.vectors.is_empty() {
        true => cluster::quality(&nowhere(&gathered), &found.clusters),
        false => cluster::quality(&gathered.vectors, &found.clusters),
    };
    let picture = match dims {
        Some(dims) => picture(&gathered.vectors, dims, &mut found, stop)?,
        None => Vec::new(),
    };
    Ok(Computed {
        gathered,
        found: found.clusters,
        branches,
        quality,
        picture,
        algorithm: found.algorithm,
        finds_noise: found.finds_noise,
        said: found.said,
    })
}

fn find(gathered: &Gathered, how: How, stop: &Stop) -> Result<Found, Stopped> {
    let points = &gathered.vectors;
    let (settings, auto, most, depth) = match how {
        How::Attributes { .. } => {
            return Ok(Found::new(
                by_attributes(gathered),
                "attribute_based",
                false,
            ));
        }
        How::Assign { centroids, least } => {
            let clusters = cluster::assigned(points, &centroids, least);
            return Ok(Found::new(clusters, "assign", true));
        }
        How::Vectors {
            settings,
            auto,
            most,
            depth,
        } => (*settings, auto, most, depth),
    };
    let (clusters, used) = match &gathered.composed {
        Some(composed) => composed.cluster(points, |middles| {
            by_vectors(middles, settings, auto, most, stop)
        })?,
        None => by_vectors(points, settings, auto, most, stop)?,
    };
    let mut found = Found::new(clusters, used.algorithm.name(), used.finds_noise());
    let compared = found.clusters.compared;
    if compared < points.len() {
        let all = points.len();
        found.said.push(format!(
            "{compared} of {all} vectors, chosen by chance, were compared; the others are in the cluster nearest to them"
        ));
    }
    if depth > 1 {
        let whole = std::mem::take(&mut found.clusters);
        (found.clusters, found.paths) = cluster::divided(points, whole, &used, depth, stop)?;
    }
    found.settings = Some(used);
    Ok(found)
}

/// By the layout that the vectors were compared in, or the directions in which they differ most.
fn picture(
    points: &[Vec<f32>],
    dims: usize,
    found: &mut Found,
    stop: &Stop,
) -> Result<Vec<Vec<f32>>, Stopped> {
    let steps = found.settings.as_ref().map(|one| one.reductions.as_slice());
    let steps = steps.unwrap_or_default();
    if let Some(drawn) = cluster::picture(points, dims, steps, stop)? {
        return Ok(drawn);
    }
    let draws = |step: &Reduction| !matches!(step, Reduction::Whitening(_));
    if steps.iter().any(draws) {
        let said = "the picture shows principal components: there are more documents than the layout takes";
        found.said.push(said.into());
    }
    cluster::project(points, dims, stop)
}

/// As asked; `auto` gathers by density, and into a number of groups where density finds no groups or leaves most out.
fn by_vectors(
    points: &[Vec<f32>],
    settings: Settings,
    auto: bool,
    most: Option<usize>,
    stop: &Stop,
) -> Result<(Clustering, Settings), Stopped> {
    let found = cluster::cluster(points, &settings, most, stop)?;
    let out = found.labels.iter().filter(|label| **label == NOISE).count();
    if !auto || (found.clusters.len() > 1 && out * 2 <= points.len()) {
        return Ok((found, settings));
    }
    let instead = Settings {
        clusters: None,
        starts: 4,
        rounds: 100,
        seed: settings.seed,
        reductions: settings.reductions,
        ..Settings::new(Algorithm::Kmeans)
    };
    let found = cluster::cluster(points, &instead, most, stop)?;
    Ok((found, instead))
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
