//! Templates that resources are made of.

use super::{Access, DELETE, READ, Row, Scoped, WRITE};

pub(super) const ROWS: &[Row] = rows! {
    Whole {
        "POST /v1/templates/buckets" READ,
        "GET /v1/templates/buckets/{template_id}" READ,
        "POST /v1/templates/collections" READ,
        "GET /v1/templates/collections/{template_id}" READ,
        "POST /v1/templates/retrievers" READ,
        "GET /v1/templates/retrievers/{template_id}" READ,
        "POST /v1/templates/taxonomies" READ,
        "GET /v1/templates/taxonomies/{template_id}" READ,
        "POST /v1/templates/clusters" READ,
        "GET /v1/templates/clusters/{template_id}" READ,
        "GET /v1/templates/namespaces" READ,
        "GET /v1/templates/namespaces/{template_id}" READ,
    }
    InRules {
        "POST /v1/templates/buckets/from-bucket/{bucket_id}" WRITE,
        "POST /v1/templates/buckets/{template_id}/instantiate" WRITE,
        "POST /v1/templates/collections/from-collection/{collection_id}" WRITE,
        "POST /v1/templates/collections/{template_id}/instantiate" WRITE,
        "POST /v1/templates/retrievers/from-retriever/{retriever_id}" WRITE,
        "POST /v1/templates/retrievers/{template_id}/instantiate" WRITE,
        "POST /v1/templates/taxonomies/from-taxonomy/{taxonomy_id}" WRITE,
        "POST /v1/templates/taxonomies/{template_id}/instantiate" WRITE,
        "POST /v1/templates/clusters/from-cluster/{cluster_id}" WRITE,
        "POST /v1/templates/clusters/{template_id}/instantiate" WRITE,
        "POST /v1/templates/namespaces/from-namespace/{namespace_id}" WRITE,
        "GET /v1/public/templates/namespaces" Access::Public,
        "GET /v1/public/templates/namespaces/{template_id}" Access::Public,
        "GET /v1/public/templates/retrievers" Access::Public,
        "GET /v1/public/templates/retrievers/{template_id}" Access::Public,
    }
    Organization {
        "DELETE /v1/templates/{template_id}" DELETE,
    }
};
