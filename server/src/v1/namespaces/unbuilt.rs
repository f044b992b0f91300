//! Members of namespaces that this version does not act on: that is said, not passed over. What asks for nothing is taken.

use loupe_wire::{
    CreateNamespaceRequest, NamespaceCostCapOverride, NamespaceInfrastructure,
    NamespaceSpendBudgetUpdate, NamespaceTrustedIssuer, PatchNamespaceRequest, TieringOverride,
};

use crate::{
    error::Result,
    v1::collections::unbuilt::{check_tiering, refuse},
};

/// # Errors
/// 422 for what a new namespace would not do.
pub(super) fn check_new(request: &CreateNamespaceRequest) -> Result<()> {
    check_own(
        request.tiering.as_ref(),
        request.trusted_issuers.as_deref(),
        request.infrastructure.as_ref(),
        request.spend_budget.as_ref(),
        request.cost_cap_override.as_ref(),
    )?;
    match request.vector_configs.as_deref() {
        None | Some([]) => Ok(()),
        Some(_) => refuse(
            "vector_configs",
            "a namespace of one's own vectors is made by POST /v1/namespaces/standalone",
        ),
    }
}

/// # Errors
/// 422 for what a namespace would not do.
pub(super) fn check_change(request: &PatchNamespaceRequest) -> Result<()> {
    check_own(
        request.tiering.as_ref(),
        request.trusted_issuers.as_deref(),
        request.infrastructure.as_ref(),
        request.spend_budget.as_ref(),
        request.cost_cap_override.as_ref(),
    )?;
    match request.repair_vectors {
        Some(true) => refuse(
            "repair_vectors",
            "vectors are not repaired by themselves: process the collections again",
        ),
        _ => Ok(()),
    }
}

/// What new namespaces and changed ones may ask for alike.
fn check_own(
    tiering: Option<&TieringOverride>,
    issuers: Option<&[NamespaceTrustedIssuer]>,
    infrastructure: Option<&NamespaceInfrastructure>,
    budget: Option<&NamespaceSpendBudgetUpdate>,
    cap: Option<&NamespaceCostCapOverride>,
) -> Result<()> {
    check_tiering(tiering)?;
    check_access(issuers, infrastructure)?;
    check_costs(budget, cap)
}

/// Who would be let in, or kept out, and what the work would run on.
fn check_access(
    issuers: Option<&[NamespaceTrustedIssuer]>,
    infrastructure: Option<&NamespaceInfrastructure>,
) -> Result<()> {
    if issuers.is_some_and(|issuers| !issuers.is_empty()) {
        let msg = "tokens of other issuers are not accepted yet: make keys with a principal_id";
        return refuse("trusted_issuers", msg);
    }
    let asks = |sent: &NamespaceInfrastructure| {
        let mut sent = sent.clone();
        sent.authorization = sent.authorization.filter(|one| one.enabled);
        sent != NamespaceInfrastructure::default()
    };
    match infrastructure.is_some_and(asks) {
        true => refuse(
            "infrastructure",
            "namespaces have no machines, storage or authorization of their own: leave it out",
        ),
        false => Ok(()),
    }
}

fn check_costs(
    budget: Option<&NamespaceSpendBudgetUpdate>,
    cap: Option<&NamespaceCostCapOverride>,
) -> Result<()> {
    if budget.is_some_and(|one| one.daily_usd.is_some() || one.monthly_usd.is_some()) {
        let msg = "a budget is the organization's: POST /v1/organizations/billing/spending-caps";
        return refuse("spend_budget", msg);
    }
    match cap {
        Some(_) => {
            let msg = "a cap is the organization's: POST /v1/organizations/billing/spending-caps";
            refuse("cost_cap_override", msg)
        }
        None => Ok(()),
    }
}
