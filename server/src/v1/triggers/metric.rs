//! Figures that conditions are held against: of collections, of clusters, of searches and of batches.

use loupe_engine::store::Reach;
use loupe_wire::{ClusterExecutionMetrics, Trigger};
use serde::{Deserialize, Serialize};

use super::member;
use crate::{app::App, args, error::Result, v1::clusters};

crate::sql! {
    const OBJECTS = "SELECT CAST(COUNT(*) AS BIGINT), CAST(SUM(CASE WHEN o.status = 'FAILED' THEN 1 ELSE 0 END) AS BIGINT) FROM batches b JOIN batch_objects o ON o.batch_id = b.batch_id WHERE b.namespace_id = $1 AND b.status IN ('COMPLETED', 'COMPLETED_WITH_ERRORS', 'FAILED') AND b.updated_at >= $2";
    const SEARCHES = "SELECT CAST(COUNT(*) AS BIGINT), CAST(SUM(micros) AS BIGINT), CAST(SUM(CASE WHEN returned = 0 THEN 1 ELSE 0 END) AS BIGINT) FROM executions WHERE namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND created_at >= $3 AND status <> 'failed'";
}

/// Microseconds that batches and searches are looked back at.
const HOUR: i64 = 3_600_000_000;

/// Something with a number at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Documents of the collections.
    DocumentCount,
    /// The part of the objects that failed, in the namespace's batches that ended within the last hour.
    ErrorRate,
    /// Mean milliseconds of the searches of the last hour.
    LatencyMs,
    /// The part of the searches of the last hour that found nothing.
    NoResultRate,
    SilhouetteScore,
    DaviesBouldinIndex,
    CalinskiHarabaszScore,
    NoiseRatio,
    AvgClusterSize,
    ClusterSizeEntropy,
    MeanCosineToCentroid,
}

/// What a figure is told of.
pub(super) enum Of {
    /// The collections that are measured, or clusters of them.
    Collections,
    /// The batches of the namespace.
    Batches,
    /// The searches of the action's retriever, else of all of the namespace.
    Searches,
}

impl Figure {
    pub(super) const fn of(self) -> Of {
        match self {
            Self::ErrorRate => Of::Batches,
            Self::LatencyMs | Self::NoResultRate => Of::Searches,
            Self::DocumentCount
            | Self::SilhouetteScore
            | Self::DaviesBouldinIndex
            | Self::CalinskiHarabaszScore
            | Self::NoiseRatio
            | Self::AvgClusterSize
            | Self::ClusterSizeEntropy
            | Self::MeanCosineToCentroid => Of::Collections,
        }
    }

    const ALL: [Self; 11] = [
        Self::DocumentCount,
        Self::ErrorRate,
        Self::LatencyMs,
        Self::NoResultRate,
        Self::SilhouetteScore,
        Self::DaviesBouldinIndex,
        Self::CalinskiHarabaszScore,
        Self::NoiseRatio,
        Self::AvgClusterSize,
        Self::ClusterSizeEntropy,
        Self::MeanCosineToCentroid,
    ];

    /// The names of all, for those who have to choose.
    pub(super) fn names() -> String {
        Self::ALL.map(crate::v1::tasks::name_of).join(", ")
    }
}

/// How a figure is held against a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    Gt,
    Gte,
    Lt,
    Lte,
}

impl Compare {
    pub(super) fn holds(self, value: f64, threshold: f64) -> bool {
        match self {
            Self::Gt => value > threshold,
            Self::Gte => value >= threshold,
            Self::Lt => value < threshold,
            Self::Lte => value <= threshold,
        }
    }
}

/// The number of a figure at this moment; none where there is nothing to tell it by.
///
/// # Errors
/// The cluster or the retriever that the action names is gone, or the store or the database does not answer.
pub(super) async fn value(
    app: &App,
    trigger: &Trigger,
    reach: &Reach,
    figure: Figure,
) -> Result<Option<f64>> {
    match figure {
        Figure::DocumentCount if reach.collection_ids.is_empty() => Ok(Some(0.0)),
        Figure::DocumentCount => Ok(Some(app.store().count(reach, None).await? as f64)),
        Figure::ErrorRate => errors(app, trigger).await,
        Figure::LatencyMs | Figure::NoResultRate => searches(app, trigger, figure).await,
        _ => {
            let named = member(&trigger.action_config, "cluster_id");
            let ids = &reach.collection_ids;
            let found = clusters::figures(app, &trigger.namespace_id, named, ids).await?;
            Ok(found.and_then(|figures| of_cluster(&figures, figure)))
        }
    }
}

fn of_cluster(figures: &ClusterExecutionMetrics, figure: Figure) -> Option<f64> {
    match figure {
        Figure::SilhouetteScore => figures.silhouette_score,
        Figure::DaviesBouldinIndex => figures.davies_bouldin_index,
        Figure::CalinskiHarabaszScore => figures.calinski_harabasz_score,
        Figure::NoiseRatio => figures.noise_ratio,
        Figure::AvgClusterSize => figures.avg_cluster_size,
        Figure::ClusterSizeEntropy => figures.cluster_size_entropy,
        Figure::MeanCosineToCentroid => figures.mean_cosine_to_centroid,
        _ => None,
    }
}

async fn errors(app: &App, trigger: &Trigger) -> Result<Option<f64>> {
    let args = args![&trigger.namespace_id, app.clock().micros() - HOUR];
    let row: Option<(i64, Option<i64>)> = app.db().one(OBJECTS, args).await?;
    Ok(row.and_then(|(objects, failed)| share(failed, objects)))
}

/// Of the retriever that the action executes, else of all of the namespace.
async fn searches(app: &App, trigger: &Trigger, figure: Figure) -> Result<Option<f64>> {
    let namespace_id = &trigger.namespace_id;
    let retriever_id = match member(&trigger.action_config, "retriever_id") {
        Some(named) => {
            let found = crate::v1::retrievers::RETRIEVERS.known(app.db(), namespace_id, named);
            found.await?.id.clone()
        }
        None => String::new(),
    };
    let args = args![namespace_id, &retriever_id, app.clock().micros() - HOUR];
    let row: Option<(i64, Option<i64>, Option<i64>)> = app.db().one(SEARCHES, args).await?;
    Ok(row.and_then(|(count, micros, empty)| match figure {
        Figure::LatencyMs => share(micros, count).map(|micros| micros / 1000.0),
        _ => share(empty, count),
    }))
}

/// A part of a whole, where there is one.
fn share(part: Option<i64>, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part.unwrap_or(0) as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_name_that_is_read_again() {
        for name in Figure::names().split(", ") {
            let read = loupe_wire::reading::from_value::<Figure>(&name.into());
            assert!(read.is_ok(), "{name}");
        }
        assert!(Compare::Lt.holds(0.1, 0.2) && !Compare::Gte.holds(0.1, 0.2));
    }
}
