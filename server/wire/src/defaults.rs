//! Values of members that a caller leaves out, as functions, for that is how serde asks for them.

macro_rules! defaults {
    ($($name:ident: $of:ty = $value:expr;)*) => {
        $(pub fn $name() -> $of {
            $value
        })*
    };
}

macro_rules! texts {
    ($($name:ident = $text:literal;)*) => {
        $(pub fn $name() -> String {
            $text.to_owned()
        })*
    };
}

defaults! {
    f64_0_0: f64 = 0.0;
    f64_0_001: f64 = 0.001;
    f64_0_05: f64 = 0.05;
    f64_0_1: f64 = 0.1;
    f64_0_6: f64 = 0.6;
    f64_0_85: f64 = 0.85;
    f64_0_95: f64 = 0.95;
    f64_0_99: f64 = 0.99;
    f64_0_995: f64 = 0.995;
    f64_100_0: f64 = 100.0;
    f64_15_0: f64 = 15.0;
    f64_1_0: f64 = 1.0;
    f64_50_0: f64 = 50.0;
    f64_5_0: f64 = 5.0;
    i64_0: i64 = 0;
    i64_1: i64 = 1;
    i64_10: i64 = 10;
    i64_100: i64 = 100;
    i64_1000: i64 = 1000;
    i64_100000: i64 = 100_000;
    i64_120: i64 = 120;
    i64_150: i64 = 150;
    i64_2: i64 = 2;
    i64_20: i64 = 20;
    i64_25: i64 = 25;
    i64_3: i64 = 3;
    i64_30: i64 = 30;
    i64_300: i64 = 300;
    i64_3600: i64 = 3600;
    i64_365: i64 = 365;
    i64_4: i64 = 4;
    i64_5: i64 = 5;
    i64_72: i64 = 72;
    yes: bool = true;
    f64_10_0: f64 = 10.0;
    i64_50: i64 = 50;
    f64_0_7: f64 = 0.7;
    f64_0_3: f64 = 0.3;
    f64_0_4: f64 = 0.4;
    f64_0_5: f64 = 0.5;
    f64_0_55: f64 = 0.55;
    f64_0_8: f64 = 0.8;
    i64_200: i64 = 200;
    i64_42: i64 = 42;
    i64_604800: i64 = 604_800;
}

defaults! {
    a_p_i_key_type_standard: crate::APIKeyType = crate::APIKeyType::Standard;
    alert_execution_mode_on_ingest: crate::AlertExecutionMode = crate::AlertExecutionMode::OnIngest;
    batch_type_bucket: crate::BatchType = crate::BatchType::Bucket;
    batching_config_mode_time_window: crate::BatchingConfigMode = crate::BatchingConfigMode::TimeWindow;
    blob_u_r_l_ref_role_source: crate::BlobURLRefRole = crate::BlobURLRefRole::Source;
    blob_u_r_l_ref_type_other: crate::BlobURLRefType = crate::BlobURLRefType::Other;
    clone_namespace_request_mode_copy: crate::CloneNamespaceRequestMode = crate::CloneNamespaceRequestMode::Copy;
    collection_model_schema_validation_off: crate::CollectionModelSchemaValidation = crate::CollectionModelSchemaValidation::Off;
    collection_response_schema_validation_off: crate::CollectionResponseSchemaValidation = crate::CollectionResponseSchemaValidation::Off;
    document_graph_extractor_params_extractor_type_document_graph_extractor: crate::DocumentGraphExtractorParamsExtractorType = crate::DocumentGraphExtractorParamsExtractorType::DocumentGraphExtractor;
    document_graph_extractor_params_layout_detector_pymupdf: crate::DocumentGraphExtractorParamsLayoutDetector = crate::DocumentGraphExtractorParamsLayoutDetector::Pymupdf;
    edge_model_direction_out: crate::EdgeModelDirection = crate::EdgeModelDirection::Out;
    export_format_parquet: crate::ExportFormat = crate::ExportFormat::Parquet;
    extractor_source_builtin: crate::ExtractorSource = crate::ExtractorSource::Builtin;
    feature_search_group_by_output_mode_all: crate::FeatureSearchGroupByOutputMode = crate::FeatureSearchGroupByOutputMode::All;
    hierarchical_enrichment_style_combined: crate::HierarchicalEnrichmentStyle = crate::HierarchicalEnrichmentStyle::Combined;
    image_extractor_params_extractor_type_image_extractor: crate::ImageExtractorParamsExtractorType = crate::ImageExtractorParamsExtractorType::ImageExtractor;
    key_status_active: crate::KeyStatus = crate::KeyStatus::Active;
    learned_fusion_config_fallback_strategy_hierarchical: crate::LearnedFusionConfigFallbackStrategy = crate::LearnedFusionConfigFallbackStrategy::Hierarchical;
    namespace_authorization_config_mode_auto: crate::NamespaceAuthorizationConfigMode = crate::NamespaceAuthorizationConfigMode::Auto;
    namespace_authorization_config_provider_openfga: crate::NamespaceAuthorizationConfigProvider = crate::NamespaceAuthorizationConfigProvider::Openfga;
    namespace_type_standard: crate::NamespaceType = crate::NamespaceType::Standard;
    passthrough_extractor_params_extractor_type_passthrough_extractor: crate::PassthroughExtractorParamsExtractorType = crate::PassthroughExtractorParamsExtractorType::PassthroughExtractor;
    rate_limit_tier_standard: crate::RateLimitTier = crate::RateLimitTier::Standard;
    retriever_visibility_private: crate::RetrieverVisibility = crate::RetrieverVisibility::Private;
    retry_batch_request_retry_mode_transient_only: crate::RetryBatchRequestRetryMode = crate::RetryBatchRequestRetryMode::TransientOnly;
    sort_direction_asc: crate::SortDirection = crate::SortDirection::Asc;
    task_status_enum_active: crate::TaskStatusEnum = crate::TaskStatusEnum::Active;
    task_status_enum_draft: crate::TaskStatusEnum = crate::TaskStatusEnum::Draft;
    sync_mode_continuous: crate::SyncMode = crate::SyncMode::Continuous;
    task_status_enum_pending: crate::TaskStatusEnum = crate::TaskStatusEnum::Pending;
    taxonomy_execution_mode_materialize: crate::TaxonomyExecutionMode = crate::TaxonomyExecutionMode::Materialize;
    text_extractor_params_extractor_type_text_extractor: crate::TextExtractorParamsExtractorType = crate::TextExtractorParamsExtractorType::TextExtractor;
    text_extractor_params_source_type_text: crate::TextExtractorParamsSourceType = crate::TextExtractorParamsSourceType::Text;
    text_split_strategy_none: crate::TextSplitStrategy = crate::TextSplitStrategy::None;
    user_role_member: crate::UserRole = crate::UserRole::Member;
    write_back_field_mapping_mode_first: crate::WriteBackFieldMappingMode = crate::WriteBackFieldMappingMode::First;
    trigger_status_active: crate::TriggerStatus = crate::TriggerStatus::Active;
    enrichment_merge_mode_replace: crate::EnrichmentMergeMode = crate::EnrichmentMergeMode::Replace;
    join_mode_on_demand: crate::JoinMode = crate::JoinMode::OnDemand;
    step_key_source_assignment_label: crate::StepKeySource = crate::StepKeySource::AssignmentLabel;
    auth_config_input_mode_public: crate::AuthConfigInputMode = crate::AuthConfigInputMode::Public;
    auth_config_output_mode_public: crate::AuthConfigOutputMode = crate::AuthConfigOutputMode::Public;
    build_config_framework_react: crate::BuildConfigFramework = crate::BuildConfigFramework::React;
    custom_domain_config_status_pending: crate::CustomDomainConfigStatus = crate::CustomDomainConfigStatus::Pending;
    deploy_request_environment_production: crate::DeployRequestEnvironment = crate::DeployRequestEnvironment::Production;
    deploy_request_source_cli_upload: crate::DeployRequestSource = crate::DeployRequestSource::CliUpload;
    hero_config_background_type_solid: crate::HeroConfigBackgroundType = crate::HeroConfigBackgroundType::Solid;
    restore_version_request_environment_production: crate::RestoreVersionRequestEnvironment = crate::RestoreVersionRequestEnvironment::Production;
    cluster_type_vector: crate::ClusterType = crate::ClusterType::Vector;
    cluster_execution_mode_full: crate::ClusterExecutionMode = crate::ClusterExecutionMode::Full;
    sample_selection_strategy_nearest: crate::SampleSelectionStrategy = crate::SampleSelectionStrategy::Nearest;
    weight_learning_config_method_bayesian: crate::WeightLearningConfigMethod = crate::WeightLearningConfigMethod::Bayesian;
    weight_learning_config_metric_silhouette: crate::WeightLearningConfigMetric = crate::WeightLearningConfigMetric::Silhouette;
}

texts! {
    text_ = ", ";
    text_007aff = "#007AFF";
    text_16px = "16px";
    text_374151 = "#374151";
    text_active = "active";
    text_auto = "auto";
    text_bulk_purge = "bulk_purge";
    text_disabled = "disabled";
    text_batch_delete_completed = "Batch delete completed";
    text_batch_update_completed = "Batch update completed";
    text_both = "both";
    text_bulk_update_enqueued = "Bulk update enqueued";
    text_click = "click";
    text_cloning = "cloning";
    text_cosine = "cosine";
    text_cover = "cover";
    text_created = "created";
    text_document = "document";
    text_en = "en";
    text_en_us = "en_US";
    text_ffffff = "#FFFFFF";
    text_gemini_2_5_flash = "gemini-2.5-flash";
    text_general = "general";
    text_google = "google";
    text_index_follow = "index, follow";
    text_jwt = "jwt:";
    text_site_name = "Loupe";
    text_loupe = "loupe";
    text_loupe_plugins = "loupe-plugins";
    text_managed = "managed";
    text_standalone = "standalone";
    text_metadata_created_at = "metadata.created_at";
    text_metadata_status = "metadata.status";
    text_mvp = "mvp";
    text_namespace = "namespace";
    text_no = "No";
    text_pending = "pending";
    text_relative = "relative";
    text_rrf = "rrf";
    text_skip = "skip";
    text_sub = "sub";
    text_successfully_completed = "Successfully completed";
    text_successfully_deleted = "Successfully deleted";
    text_summary_large_image = "summary_large_image";
    text_system_ui_apple_system_sans_serif = "system-ui, -apple-system, sans-serif";
    text_text = "text";
    text_user = "user";
    text_video = "video";
    text_viewdetails = "viewDetails";
    text_viewer = "viewer";
    text_webapplication = "WebApplication";
    text_website = "website";
    text_yes = "Yes";
    text_system = "system";
    text_content = "content";
    text_created_at = "created_at";
    text_desc = "desc";
    text_change = "change";
    text_slash = "/";
    text_bracketed = "bracketed";
    text_could_not_measure = "could_not_measure";
    text_none = "none";
    text_scroll_bracketed = "scroll_bracketed";
    text_snapshot = "snapshot";
    text_error = "error";
    text_retriever_evaluation = "retriever.evaluation";
    text_420px = "420px";
    text_application_zip = "application/zip";
    text_deploy_via_bundle_upload = "Deploy via bundle upload";
    text_featured = "Featured";
    text_generic = "generic";
    text_org_member = "org:member";
    text_production = "production";
    text_src_layout_jsx = "src/layout.jsx";
    text_bbox = "bbox";
    text_frame_number = "frame_number";
    text_scene_id = "scene_id";
    text_loupe_text_extractor_v1_embedding = "loupe://text_extractor@v1/embedding";
    text_random = "random";
}
