//! Wire types of the interface: fusion that learns from interactions.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LearnedFusionConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<LearningAlgorithm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_features: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demographic_features: Vec<String>,
    #[serde(default = "crate::defaults::learned_fusion_config_fallback_strategy_hierarchical")]
    pub fallback_strategy: LearnedFusionConfigFallbackStrategy,
    #[serde(default = "crate::defaults::i64_5")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub min_interactions: i64,
    #[serde(default = "crate::defaults::text_click")]
    pub reward_signal: String,
    #[serde(default = "crate::defaults::f64_1_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.1, max = 10.0)))]
    pub exploration_bonus: f64,
    #[serde(default = "crate::defaults::f64_1_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.1)))]
    pub prior_alpha: f64,
    #[serde(default = "crate::defaults::f64_1_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.1)))]
    pub prior_beta: f64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub reward_map: IndexMap<String, f64>,
    #[serde(default = "crate::defaults::f64_0_995")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.9, max = 1.0)))]
    pub decay_factor: f64,
    #[serde(default = "crate::defaults::i64_365")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 3650)))]
    pub decay_window_days: i64,
    #[serde(default = "crate::defaults::f64_0_05")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 0.5)))]
    pub min_weight: f64,
    #[serde(default = "crate::defaults::f64_0_95")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.5, max = 1.0)))]
    pub max_weight: f64,
    #[serde(default = "crate::defaults::f64_0_99")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.9, max = 1.0)))]
    pub exploration_decay: f64,
    #[serde(default = "crate::defaults::f64_0_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 5.0)))]
    pub exploration_floor: f64,
    #[serde(default = "crate::defaults::f64_5_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.1, max = 100.0)))]
    pub max_reward_per_interaction: f64,
    #[serde(default = "crate::defaults::f64_100_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 100.0)))]
    pub rollout_pct: f64,
    #[serde(default)]
    pub shadow_mode: bool,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 30000)))]
    pub circuit_breaker_timeout_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_dataset_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped_weight_set: Option<ShippedWeightSet>,
}

impl Default for LearnedFusionConfig {
    fn default() -> Self {
        Self {
            algorithm: None,
            context_features: Default::default(),
            demographic_features: Default::default(),
            fallback_strategy:
                crate::defaults::learned_fusion_config_fallback_strategy_hierarchical(),
            min_interactions: crate::defaults::i64_5(),
            reward_signal: crate::defaults::text_click(),
            exploration_bonus: crate::defaults::f64_1_0(),
            prior_alpha: crate::defaults::f64_1_0(),
            prior_beta: crate::defaults::f64_1_0(),
            reward_map: Default::default(),
            decay_factor: crate::defaults::f64_0_995(),
            decay_window_days: crate::defaults::i64_365(),
            min_weight: crate::defaults::f64_0_05(),
            max_weight: crate::defaults::f64_0_95(),
            exploration_decay: crate::defaults::f64_0_99(),
            exploration_floor: crate::defaults::f64_0_1(),
            max_reward_per_interaction: crate::defaults::f64_5_0(),
            rollout_pct: crate::defaults::f64_100_0(),
            shadow_mode: false,
            circuit_breaker_timeout_ms: crate::defaults::i64_1000(),
            evaluation_dataset_id: None,
            shipped_weight_set: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LearnedFusionConfigFallbackStrategy {
    #[default]
    #[serde(rename = "hierarchical")]
    Hierarchical,
    #[serde(rename = "global")]
    Global,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LearningAlgorithm {
    #[default]
    #[serde(rename = "thompson_sampling")]
    ThompsonSampling,
    #[serde(rename = "epsilon_greedy")]
    EpsilonGreedy,
    #[serde(rename = "ucb")]
    Ucb,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ShippedWeightSet {
    pub weight_set_id: String,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub weights: IndexMap<String, f64>,
    pub evaluation_id: String,
    pub baseline_evaluation_id: String,
    pub shipped_at: DateTime<Utc>,
}
