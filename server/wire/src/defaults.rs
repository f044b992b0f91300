//! Values of members that a caller leaves out.

pub fn a_p_i_key_type_standard() -> crate::APIKeyType {
    crate::APIKeyType::Standard
}

pub fn alert_execution_mode_on_ingest() -> crate::AlertExecutionMode {
    crate::AlertExecutionMode::OnIngest
}

pub fn batch_type_bucket() -> crate::BatchType {
    crate::BatchType::Bucket
}

pub fn batching_config_mode_time_window() -> crate::BatchingConfigMode {
    crate::BatchingConfigMode::TimeWindow
}

pub fn blob_u_r_l_ref_role_source() -> crate::BlobURLRefRole {
    crate::BlobURLRefRole::Source
}

pub fn blob_u_r_l_ref_type_other() -> crate::BlobURLRefType {
    crate::BlobURLRefType::Other
}

pub fn clone_namespace_request_mode_copy() -> crate::CloneNamespaceRequestMode {
    crate::CloneNamespaceRequestMode::Copy
}

pub fn collection_model_schema_validation_off() -> crate::CollectionModelSchemaValidation {
    crate::CollectionModelSchemaValidation::Off
}

pub fn collection_response_schema_validation_off() -> crate::CollectionResponseSchemaValidation {
    crate::CollectionResponseSchemaValidation::Off
}

pub fn document_graph_extractor_params_extractor_type_document_graph_extractor()
-> crate::DocumentGraphExtractorParamsExtractorType {
    crate::DocumentGraphExtractorParamsExtractorType::DocumentGraphExtractor
}

pub fn document_graph_extractor_params_layout_detector_pymupdf()
-> crate::DocumentGraphExtractorParamsLayoutDetector {
    crate::DocumentGraphExtractorParamsLayoutDetector::Pymupdf
}

pub fn edge_model_direction_out() -> crate::EdgeModelDirection {
    crate::EdgeModelDirection::Out
}

pub fn export_format_parquet() -> crate::ExportFormat {
    crate::ExportFormat::Parquet
}

pub fn extractor_source_builtin() -> crate::ExtractorSource {
    crate::ExtractorSource::Builtin
}

pub fn f64_0_0() -> f64 {
    0.0
}

pub fn f64_0_001() -> f64 {
    0.001
}

pub fn f64_0_05() -> f64 {
    0.05
}

pub fn f64_0_1() -> f64 {
    0.1
}

pub fn f64_0_6() -> f64 {
    0.6
}

pub fn f64_0_85() -> f64 {
    0.85
}

pub fn f64_0_95() -> f64 {
    0.95
}

pub fn f64_0_99() -> f64 {
    0.99
}

pub fn f64_0_995() -> f64 {
    0.995
}

pub fn f64_100_0() -> f64 {
    100.0
}

pub fn f64_15_0() -> f64 {
    15.0
}

pub fn f64_1_0() -> f64 {
    1.0
}

pub fn f64_50_0() -> f64 {
    50.0
}

pub fn f64_5_0() -> f64 {
    5.0
}

pub fn feature_search_group_by_output_mode_all() -> crate::FeatureSearchGroupByOutputMode {
    crate::FeatureSearchGroupByOutputMode::All
}

pub fn hierarchical_enrichment_style_combined() -> crate::HierarchicalEnrichmentStyle {
    crate::HierarchicalEnrichmentStyle::Combined
}

pub fn i64_0() -> i64 {
    0
}

pub fn i64_1() -> i64 {
    1
}

pub fn i64_10() -> i64 {
    10
}

pub fn i64_100() -> i64 {
    100
}

pub fn i64_1000() -> i64 {
    1000
}

pub fn i64_120() -> i64 {
    120
}

pub fn i64_150() -> i64 {
    150
}

pub fn i64_2() -> i64 {
    2
}

pub fn i64_20() -> i64 {
    20
}

pub fn i64_25() -> i64 {
    25
}

pub fn i64_3() -> i64 {
    3
}

pub fn i64_30() -> i64 {
    30
}

pub fn i64_300() -> i64 {
    300
}

pub fn i64_3600() -> i64 {
    3600
}

pub fn i64_365() -> i64 {
    365
}

pub fn i64_4() -> i64 {
    4
}

pub fn i64_5() -> i64 {
    5
}

pub fn i64_72() -> i64 {
    72
}

pub fn image_extractor_params_extractor_type_image_extractor()
-> crate::ImageExtractorParamsExtractorType {
    crate::ImageExtractorParamsExtractorType::ImageExtractor
}

pub fn key_status_active() -> crate::KeyStatus {
    crate::KeyStatus::Active
}

pub fn learned_fusion_config_fallback_strategy_hierarchical()
-> crate::LearnedFusionConfigFallbackStrategy {
    crate::LearnedFusionConfigFallbackStrategy::Hierarchical
}

pub fn namespace_authorization_config_mode_auto() -> crate::NamespaceAuthorizationConfigMode {
    crate::NamespaceAuthorizationConfigMode::Auto
}

pub fn namespace_authorization_config_provider_openfga()
-> crate::NamespaceAuthorizationConfigProvider {
    crate::NamespaceAuthorizationConfigProvider::Openfga
}

pub fn namespace_type_standard() -> crate::NamespaceType {
    crate::NamespaceType::Standard
}

pub fn passthrough_extractor_params_extractor_type_passthrough_extractor()
-> crate::PassthroughExtractorParamsExtractorType {
    crate::PassthroughExtractorParamsExtractorType::PassthroughExtractor
}

pub fn rate_limit_tier_standard() -> crate::RateLimitTier {
    crate::RateLimitTier::Standard
}

pub fn retriever_visibility_private() -> crate::RetrieverVisibility {
    crate::RetrieverVisibility::Private
}

pub fn retry_batch_request_retry_mode_transient_only() -> crate::RetryBatchRequestRetryMode {
    crate::RetryBatchRequestRetryMode::TransientOnly
}

pub fn sort_direction_asc() -> crate::SortDirection {
    crate::SortDirection::Asc
}

pub fn task_status_enum_active() -> crate::TaskStatusEnum {
    crate::TaskStatusEnum::Active
}

pub fn task_status_enum_draft() -> crate::TaskStatusEnum {
    crate::TaskStatusEnum::Draft
}

pub fn task_status_enum_pending() -> crate::TaskStatusEnum {
    crate::TaskStatusEnum::Pending
}

pub fn taxonomy_execution_mode_materialize() -> crate::TaxonomyExecutionMode {
    crate::TaxonomyExecutionMode::Materialize
}

pub fn text_() -> String {
    ", ".to_owned()
}

pub fn text_007aff() -> String {
    "#007AFF".to_owned()
}

pub fn text_16_9() -> String {
    "16/9".to_owned()
}

pub fn text_16px() -> String {
    "16px".to_owned()
}

pub fn text_374151() -> String {
    "#374151".to_owned()
}

pub fn text_active() -> String {
    "active".to_owned()
}

pub fn text_batch_delete_completed() -> String {
    "Batch delete completed".to_owned()
}

pub fn text_batch_update_completed() -> String {
    "Batch update completed".to_owned()
}

pub fn text_both() -> String {
    "both".to_owned()
}

pub fn text_bulk_update_enqueued() -> String {
    "Bulk update enqueued".to_owned()
}

pub fn text_click() -> String {
    "click".to_owned()
}

pub fn text_cloning() -> String {
    "cloning".to_owned()
}

pub fn text_cosine() -> String {
    "cosine".to_owned()
}

pub fn text_cover() -> String {
    "cover".to_owned()
}

pub fn text_created() -> String {
    "created".to_owned()
}

pub fn text_document() -> String {
    "document".to_owned()
}

pub fn text_en() -> String {
    "en".to_owned()
}

pub fn text_en_us() -> String {
    "en_US".to_owned()
}

pub fn text_extractor_params_extractor_type_text_extractor()
-> crate::TextExtractorParamsExtractorType {
    crate::TextExtractorParamsExtractorType::TextExtractor
}

pub fn text_extractor_params_source_type_text() -> crate::TextExtractorParamsSourceType {
    crate::TextExtractorParamsSourceType::Text
}

pub fn text_ffffff() -> String {
    "#FFFFFF".to_owned()
}

pub fn text_gemini_2_5_flash() -> String {
    "gemini-2.5-flash".to_owned()
}

pub fn text_general() -> String {
    "general".to_owned()
}

pub fn text_google() -> String {
    "google".to_owned()
}

pub fn text_grid() -> String {
    "grid".to_owned()
}

pub fn text_index_follow() -> String {
    "index, follow".to_owned()
}

pub fn text_jwt() -> String {
    "jwt:".to_owned()
}

pub fn text_site_name() -> String {
    "Loupe".to_owned()
}

pub fn text_loupe() -> String {
    "loupe".to_owned()
}

pub fn text_loupe_plugins() -> String {
    "loupe-plugins".to_owned()
}

pub fn text_managed() -> String {
    "managed".to_owned()
}

pub fn text_metadata_created_at() -> String {
    "metadata.created_at".to_owned()
}

pub fn text_metadata_status() -> String {
    "metadata.status".to_owned()
}

pub fn text_mvp() -> String {
    "mvp".to_owned()
}

pub fn text_namespace() -> String {
    "namespace".to_owned()
}

pub fn text_no() -> String {
    "No".to_owned()
}

pub fn text_pending() -> String {
    "pending".to_owned()
}

pub fn text_relative() -> String {
    "relative".to_owned()
}

pub fn text_rrf() -> String {
    "rrf".to_owned()
}

pub fn text_skip() -> String {
    "skip".to_owned()
}

pub fn text_split_strategy_none() -> crate::TextSplitStrategy {
    crate::TextSplitStrategy::None
}

pub fn text_sub() -> String {
    "sub".to_owned()
}

pub fn text_successfully_completed() -> String {
    "Successfully completed".to_owned()
}

pub fn text_successfully_deleted() -> String {
    "Successfully deleted".to_owned()
}

pub fn text_summary_large_image() -> String {
    "summary_large_image".to_owned()
}

pub fn text_system_ui_apple_system_sans_serif() -> String {
    "system-ui, -apple-system, sans-serif".to_owned()
}

pub fn text_text() -> String {
    "text".to_owned()
}

pub fn text_user() -> String {
    "user".to_owned()
}

pub fn text_vertical() -> String {
    "vertical".to_owned()
}

pub fn text_video() -> String {
    "video".to_owned()
}

pub fn text_viewdetails() -> String {
    "viewDetails".to_owned()
}

pub fn text_viewer() -> String {
    "viewer".to_owned()
}

pub fn text_webapplication() -> String {
    "WebApplication".to_owned()
}

pub fn text_website() -> String {
    "website".to_owned()
}

pub fn text_yes() -> String {
    "Yes".to_owned()
}

pub fn user_role_member() -> crate::UserRole {
    crate::UserRole::Member
}

pub fn write_back_field_mapping_mode_first() -> crate::WriteBackFieldMappingMode {
    crate::WriteBackFieldMappingMode::First
}

pub fn yes() -> bool {
    true
}

pub fn text_system() -> String {
    "system".to_owned()
}

pub fn f64_10_0() -> f64 {
    10.0
}

pub fn i64_50() -> i64 {
    50
}

pub fn text_created_at() -> String {
    "created_at".to_owned()
}

pub fn text_desc() -> String {
    "desc".to_owned()
}

pub fn text_change() -> String {
    "change".to_owned()
}

pub fn trigger_status_active() -> crate::TriggerStatus {
    crate::TriggerStatus::Active
}

pub fn enrichment_merge_mode_replace() -> crate::EnrichmentMergeMode {
    crate::EnrichmentMergeMode::Replace
}

pub fn f64_0_7() -> f64 {
    0.7
}

pub fn join_mode_on_demand() -> crate::JoinMode {
    crate::JoinMode::OnDemand
}

pub fn step_key_source_assignment_label() -> crate::StepKeySource {
    crate::StepKeySource::AssignmentLabel
}

pub fn text_slash() -> String {
    "/".to_owned()
}

pub fn text_bracketed() -> String {
    "bracketed".to_owned()
}

pub fn text_could_not_measure() -> String {
    "could_not_measure".to_owned()
}

pub fn text_none() -> String {
    "none".to_owned()
}

pub fn text_scroll_bracketed() -> String {
    "scroll_bracketed".to_owned()
}

pub fn text_snapshot() -> String {
    "snapshot".to_owned()
}

pub fn text_error() -> String {
    "error".to_owned()
}

pub fn text_retriever_evaluation() -> String {
    "retriever.evaluation".to_owned()
}

pub fn auth_config_input_mode_public() -> crate::AuthConfigInputMode {
    crate::AuthConfigInputMode::Public
}

pub fn auth_config_output_mode_public() -> crate::AuthConfigOutputMode {
    crate::AuthConfigOutputMode::Public
}

pub fn build_config_framework_react() -> crate::BuildConfigFramework {
    crate::BuildConfigFramework::React
}

pub fn custom_domain_config_status_pending() -> crate::CustomDomainConfigStatus {
    crate::CustomDomainConfigStatus::Pending
}

pub fn deploy_request_environment_production() -> crate::DeployRequestEnvironment {
    crate::DeployRequestEnvironment::Production
}

pub fn deploy_request_source_cli_upload() -> crate::DeployRequestSource {
    crate::DeployRequestSource::CliUpload
}

pub fn hero_config_background_type_solid() -> crate::HeroConfigBackgroundType {
    crate::HeroConfigBackgroundType::Solid
}

pub fn restore_version_request_environment_production() -> crate::RestoreVersionRequestEnvironment {
    crate::RestoreVersionRequestEnvironment::Production
}

pub fn text_420px() -> String {
    "420px".to_owned()
}

pub fn text_application_zip() -> String {
    "application/zip".to_owned()
}

pub fn text_deploy_via_bundle_upload() -> String {
    "Deploy via bundle upload".to_owned()
}

pub fn text_featured() -> String {
    "Featured".to_owned()
}

pub fn text_generic() -> String {
    "generic".to_owned()
}

pub fn text_org_member() -> String {
    "org:member".to_owned()
}

pub fn text_production() -> String {
    "production".to_owned()
}

pub fn text_src_layout_jsx() -> String {
    "src/layout.jsx".to_owned()
}

pub fn cluster_type_vector() -> crate::ClusterType {
    crate::ClusterType::Vector
}

pub fn cluster_execution_mode_full() -> crate::ClusterExecutionMode {
    crate::ClusterExecutionMode::Full
}

pub fn f64_0_3() -> f64 {
    0.3
}

pub fn f64_0_4() -> f64 {
    0.4
}

pub fn f64_0_5() -> f64 {
    0.5
}

pub fn f64_0_55() -> f64 {
    0.55
}

pub fn f64_0_8() -> f64 {
    0.8
}

pub fn i64_200() -> i64 {
    200
}

pub fn i64_42() -> i64 {
    42
}

pub fn i64_604800() -> i64 {
    604_800
}

pub fn sample_selection_strategy_nearest() -> crate::SampleSelectionStrategy {
    crate::SampleSelectionStrategy::Nearest
}

pub fn text_bbox() -> String {
    "bbox".to_owned()
}

pub fn text_frame_number() -> String {
    "frame_number".to_owned()
}

pub fn text_scene_id() -> String {
    "scene_id".to_owned()
}

pub fn weight_learning_config_method_bayesian() -> crate::WeightLearningConfigMethod {
    crate::WeightLearningConfigMethod::Bayesian
}

pub fn weight_learning_config_metric_silhouette() -> crate::WeightLearningConfigMetric {
    crate::WeightLearningConfigMetric::Silhouette
}

pub fn text_loupe_text_extractor_v1_embedding() -> String {
    "loupe://text_extractor@v1/embedding".to_owned()
}

pub fn text_random() -> String {
    "random".to_owned()
}
