use crate::{app::App, args, db::Tx, error::Result};

crate::sql! {
    const INSERT = "INSERT INTO exports (export_id, namespace_id, expires_at) VALUES ($1, $2, $3)";
    // Sweeps over all namespaces: a file's day is over, whoever asked for it.
    const EXPIRED = "SELECT export_id, namespace_id FROM exports WHERE expires_at < $1 LIMIT 1000";
    const DELETE = "DELETE FROM exports WHERE namespace_id = $1 AND export_id = $2";
}

/// Notes that an export's file goes some day.
pub async fn insert(tx: &mut Tx, namespace_id: &str, export_id: &str, until: i64) -> Result<()> {
    tx.run(INSERT, args![export_id, namespace_id, until])
        .await?;
    Ok(())
}

/// Removes the files whose time is over.
///
/// # Errors
/// The store or the database fails; what is left is found again.
pub async fn sweep(app: &App) -> Result<()> {
    let expired: Vec<(String, String)> = app.db().all(EXPIRED, args![app.clock().micros()]).await?;
    if expired.is_empty() {
        return Ok(());
    }
    for (export_id, namespace_id) in &expired {
        let folder = super::folder(namespace_id, export_id);
        app.blobs().delete_all(&folder).await?;
    }
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (export_id, namespace_id) in &expired {
                    tx.run(DELETE, args![namespace_id, export_id]).await?;
                }
                Ok(())
            })
        })
        .await
}
