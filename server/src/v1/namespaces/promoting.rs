//! A standalone namespace becomes a managed one: indexes are told which model questions are asked by, and get company.

use indexmap::IndexMap;
use loupe_engine::extract::{Outputs, registry::Output};
use loupe_wire::{
    CollectionResponse, NamespaceModel, NamespaceOperation, Object, PromoteNamespaceRequestModel,
    PromoteNamespaceResponseModel, PromoteValidateResponseModel, ResourceType, Value,
};
use serde_json::json;

use super::{
    NAMESPACES,
    indexes::{self, Index, OWN},
    standalone::STANDALONE,
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
    v1::collections::COLLECTIONS,
};

const MANAGED: &str = "managed";

/// What stands against a promotion: where, what, what was sent.
struct Fault {
    path: Vec<String>,
    message: String,
    input: Value,
}

/// What a promotion makes of a namespace.
struct Promotion {
    indexes: Vec<Index>,
    faults: Vec<Fault>,
}

impl Promotion {
    fn of(outputs: &Outputs, before: Vec<Index>, request: &PromoteNamespaceRequestModel) -> Self {
        let mut promotion = Self {
            indexes: before,
            faults: Vec::new(),
        };
        for (place, mapping) in request.vector_mappings.iter().enumerate() {
            let place = place.to_string();
            let name = &mapping.existing_index;
            let index = promotion
                .indexes
                .iter_mut()
                .find(|index| index.name == *name);
            let Some(index) = index else {
                let path = ["vector_mappings", &place, "existing_index"];
                let message = format!("the namespace has no index '{name}'");
                promotion.fault(&path, message, name);
                continue;
            };
            match service(outputs, index, &mapping.inference_service) {
                Ok(service) => index.service = Some(service),
                Err(message) => {
                    let path = ["vector_mappings", &place, "inference_service"];
                    promotion.fault(&path, message, &mapping.inference_service);
                }
            }
        }
        promotion.add(outputs, request);
        promotion
    }

    fn fault(&mut self, path: &[&str], message: String, input: &str) {
        self.faults.push(Fault {
            path: path.iter().map(|piece| (*piece).to_owned()).collect(),
            message,
            input: input.into(),
        });
    }

    fn add(&mut self, outputs: &Outputs, request: &PromoteNamespaceRequestModel) {
        for (place, config) in request.add_vectors.iter().enumerate() {
            let place = place.to_string();
            let path = ["add_vectors", place.as_str()];
            let mut index = match Index::read(&path, &config.name, config.dimension, &config.metric)
            {
                Ok(index) => index,
                Err(error) => {
                    self.fault(&path, error.message(), &config.name);
                    continue;
                }
            };
            if let Some(named) = &config.inference_service {
                match service(outputs, &index, named) {
                    Ok(service) => index.service = Some(service),
                    Err(message) => {
                        self.fault(
                            &["add_vectors", &place, "inference_service"],
                            message,
                            named,
                        );
                    }
                }
            }
            self.indexes.push(index);
            if indexes::check_all("add_vectors", &self.indexes).is_err() {
                self.indexes.pop();
                let message = "another index has this name, or there are too many".to_owned();
                self.fault(&["add_vectors", &place, "name"], message, &config.name);
            }
        }
    }

    fn map(&self) -> IndexMap<String, String> {
        let served = self.indexes.iter();
        served
            .filter_map(|index| Some((index.name.clone(), index.service.clone()?)))
            .collect()
    }

    /// Models that fit indexes which have none yet.
    fn suggestions(&self, outputs: &Outputs) -> Vec<Object> {
        let bare = self.indexes.iter().filter(|index| index.service.is_none());
        let suggestion = |index: &Index| {
            let fitting = outputs.models().iter().filter(|model| fits(model, index));
            let names: Vec<&str> = fitting.map(|model| model.name.as_str()).collect();
            object(json!({
                "existing_index": index.name, "dimension": index.dims, "inference_services": names,
            }))
        };
        bare.map(suggestion).collect()
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn fits(model: &Output, index: &Index) -> bool {
    i64::try_from(model.dims).is_ok_and(|dims| dims == index.dims)
}

/// The model that a name, or the address of a feature, means, if it makes vectors of the index's length.
fn service(outputs: &Outputs, index: &Index, named: &str) -> std::result::Result<String, String> {
    let name = named.rsplit('/').next().unwrap_or(named);
    let mut models = outputs.models().iter();
    let Some(model) = models.find(|model| model.name == name) else {
        let known: Vec<&str> = outputs
            .models()
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        return Err(format!(
            "there is no model '{name}' on this server; there are: {}",
            known.join(", ")
        ));
    };
    if !fits(model, index) {
        return Err(format!(
            "{name} makes vectors of {} numbers, the index '{}' has {}",
            model.dims, index.name, index.dims
        ));
    }
    Ok(model.name.clone())
}

/// The namespace and its own collection.
async fn read(
    app: &App,
    caller: &Caller,
    identifier: &str,
) -> Result<(NamespaceModel, CollectionResponse)> {
    let record = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, &record.id, operation)?;
    let collection = COLLECTIONS.find(app.db(), &record.id, OWN).await;
    let collection = match collection {
        Ok(collection) => collection.data.0,
        // A managed namespace has no such collection, and nothing to promote.
        Err(error) if error.is_not_found() => CollectionResponse::default(),
        Err(error) => return Err(error),
    };
    Ok((record.data.0, collection))
}

fn mode(namespace: &NamespaceModel) -> String {
    namespace.mode.clone().unwrap_or_else(|| MANAGED.into())
}

/// What a promotion would make of the namespace, and what stands against it. Nothing is changed.
///
/// # Errors
/// There is no such namespace.
pub async fn validate(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: PromoteNamespaceRequestModel,
) -> Result<PromoteValidateResponseModel> {
    let (namespace, collection) = read(app, caller, identifier).await?;
    let promotion = Promotion::of(app.outputs(), indexes::of(&collection), &request);
    let mode = mode(&namespace);
    let mut errors: Vec<Object> = promotion
        .faults
        .iter()
        .map(|fault| {
            object(json!({"loc": fault.path, "message": fault.message, "input": fault.input}))
        })
        .collect();
    if mode != STANDALONE {
        let message = format!("the namespace is {mode}: only a standalone one is promoted");
        errors.push(object(json!({"loc": ["namespace_id"], "message": message})));
    }
    let suggestions = promotion.suggestions(app.outputs());
    let action = match (errors.is_empty(), suggestions.is_empty()) {
        (false, _) => "correct the errors",
        (true, false) => "none; indexes without an inference service are searched by vectors only",
        (true, true) => "none",
    };
    Ok(PromoteValidateResponseModel {
        namespace_id: namespace.namespace_id.unwrap_or_default(),
        current_mode: mode,
        valid: errors.is_empty(),
        vector_configs: promotion.indexes.iter().map(Index::told).collect(),
        suggestions,
        errors,
        required_user_action: action.into(),
    })
}

/// Makes a standalone namespace a managed one.
///
/// # Errors
/// It is none, or something stands against it: nothing is changed then.
pub async fn promote(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: PromoteNamespaceRequestModel,
) -> Result<PromoteNamespaceResponseModel> {
    let (namespace, _) = read(app, caller, identifier).await?;
    let (state, caller, now) = (app.clone(), caller.clone(), app.clock().micros());
    let id = namespace.namespace_id.unwrap_or_default();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut namespace = NAMESPACES.hold(tx, &caller.org_id, &id).await?.data.0;
                let previous = mode(&namespace);
                if previous != STANDALONE {
                    let message =
                        format!("the namespace is {previous}: only a standalone one is promoted");
                    return Err(ApiError::conflict("not_standalone", message));
                }
                let collection = COLLECTIONS.hold(tx, &id, OWN).await?.data.0;
                let promotion = Promotion::of(state.outputs(), indexes::of(&collection), &request);
                refuse(&promotion.faults)?;
                let map = promotion.map();
                namespace.mode = Some(MANAGED.into());
                namespace.vector_inference_map = Some(map.clone());
                let both = (namespace, collection);
                let made =
                    indexes::replace(&state, tx, &caller, both, &promotion.indexes, now).await?;
                Ok(PromoteNamespaceResponseModel {
                    namespace_id: id,
                    previous_mode: previous,
                    mode: MANAGED.into(),
                    status: "active".into(),
                    vector_configs: made.vector_configs,
                    vector_inference_map: map,
                })
            })
        })
        .await
}

fn refuse(faults: &[Fault]) -> Result<()> {
    if faults.is_empty() {
        return Ok(());
    }
    let violation = |fault: &Fault| {
        let path: Vec<&str> = fault.path.iter().map(String::as_str).collect();
        Violation::body(
            &path,
            "value_error",
            fault.message.as_str(),
            fault.input.clone(),
        )
    };
    Err(ApiError::Validation(faults.iter().map(violation).collect()))
}
