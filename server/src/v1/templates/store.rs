use loupe_wire::{BaseTemplateModel, TemplateType};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    v1::tasks::name_of,
};

/// Templates of one kind that an organization keeps.
pub const MOST: i64 = 100;

crate::sql! {
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM templates WHERE org_id = $1 AND template_type = $2";
    const INSERT = "INSERT INTO templates (template_id, org_id, template_type, user_id, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const LIST = "SELECT data FROM templates WHERE org_id = $1 AND template_type = $2 AND (user_id = '' OR user_id = $3) ORDER BY created_at DESC, template_id";
    const FIND = "SELECT data FROM templates WHERE org_id = $1 AND template_type = $2 AND template_id = $3 AND (user_id = '' OR user_id = $4)";
    const DELETE = "DELETE FROM templates WHERE org_id = $1 AND template_id = $2 AND (user_id = '' OR user_id = $3)";
    const DELETE_OF_USER = "DELETE FROM templates WHERE org_id = $1 AND user_id = $2";
}

/// Writes a new template: one that a user alone sees, or, of nobody, the whole organization.
///
/// # Errors
/// The organization keeps as many as it may.
pub async fn insert(
    tx: &mut Tx,
    org_id: &str,
    user_id: &str,
    template: &BaseTemplateModel,
    now: i64,
) -> Result<()> {
    let kind = name_of(template.template_type);
    let kept = tx.number(COUNT, args![org_id, &kind]).await?;
    if kept >= MOST {
        let message = format!(
            "an organization keeps at most {MOST} templates of a kind: DELETE /v1/templates/{{template_id}} makes room"
        );
        return Err(ApiError::conflict("", message).with("templates", kept));
    }
    let data = Arg::json(template);
    let id = &template.template_id;
    tx.run(INSERT, args![id, org_id, kind, user_id, now, data])
        .await?;
    Ok(())
}

/// What a user of the organization sees of a kind, newest first.
pub async fn list(
    db: &Db,
    org_id: &str,
    kind: TemplateType,
    user_id: &str,
) -> Result<Vec<BaseTemplateModel>> {
    let args = args![org_id, name_of(kind), user_id];
    let rows: Vec<(Json<BaseTemplateModel>,)> = db.all(LIST, args).await?;
    Ok(rows.into_iter().map(|(Json(one),)| one).collect())
}

/// # Errors
/// 404 for one that this user does not see.
pub async fn find(
    db: &Db,
    org_id: &str,
    kind: TemplateType,
    template_id: &str,
    user_id: &str,
) -> Result<BaseTemplateModel> {
    let args = args![org_id, name_of(kind), template_id, user_id];
    let row: Option<(Json<BaseTemplateModel>,)> = db.one(FIND, args).await?;
    let found = row.map(|(Json(one),)| one);
    found.ok_or_else(|| ApiError::not_found("template", template_id))
}

/// # Errors
/// 404 for one that this user does not see.
pub async fn delete(tx: &mut Tx, org_id: &str, template_id: &str, user_id: &str) -> Result<()> {
    let gone = tx.run(DELETE, args![org_id, template_id, user_id]).await?;
    match gone {
        0 => Err(ApiError::not_found("template", template_id)),
        _ => Ok(()),
    }
}

/// Removes what only this user saw. An empty id would be the whole organization's.
///
/// # Errors
/// The database fails.
pub async fn forget_user(tx: &mut Tx, org_id: &str, user_id: &str) -> Result<()> {
    if !user_id.is_empty() {
        tx.run(DELETE_OF_USER, args![org_id, user_id]).await?;
    }
    Ok(())
}
