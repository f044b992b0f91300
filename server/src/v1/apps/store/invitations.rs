//! People who were asked to come to an app.

use crate::{
    args,
    db::{Db, Tx},
    error::Result,
    hosting::auth::store::Place,
};

crate::sql! {
    const INVITATIONS = "SELECT invitation_id, email, role, status, created_at FROM app_invitations WHERE org_id = $1 AND app_id = $2 ORDER BY created_at DESC, invitation_id";
    const COUNT_INVITATIONS = "SELECT CAST(COUNT(*) AS BIGINT) FROM app_invitations WHERE org_id = $1 AND app_id = $2 AND status = 'pending'";
    const INSERT_INVITATION = "INSERT INTO app_invitations (invitation_id, org_id, app_id, email, role, status, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app_id, email) DO UPDATE SET invitation_id = excluded.invitation_id, role = excluded.role, status = excluded.status, created_at = excluded.created_at";
    const DELETE_INVITATION = "DELETE FROM app_invitations WHERE org_id = $1 AND app_id = $2 AND invitation_id = $3";
}

crate::row! {
    /// Somebody who was asked to come.
    #[derive(Debug, Clone)]
    pub struct Invitation {
        pub invitation_id: String,
        pub email: String,
        pub role: String,
        pub status: String,
        pub created_at: i64,
    }
}

/// The newest first.
pub(in super::super) async fn invitations(db: &Db, place: &Place) -> Result<Vec<Invitation>> {
    db.all(INVITATIONS, args![&place.org_id, &place.app_id])
        .await
}

pub(in super::super) async fn count_invitations(tx: &mut Tx, place: &Place) -> Result<i64> {
    tx.number(COUNT_INVITATIONS, args![&place.org_id, &place.app_id])
        .await
}

/// Whoever is asked again is asked anew.
pub(in super::super) async fn insert_invitation(
    tx: &mut Tx,
    place: &Place,
    invitation: &Invitation,
) -> Result<()> {
    let args = args![
        &invitation.invitation_id,
        &place.org_id,
        &place.app_id,
        &invitation.email,
        &invitation.role,
        &invitation.status,
        invitation.created_at
    ];
    tx.run(INSERT_INVITATION, args).await?;
    Ok(())
}

/// Whether there was such an invitation.
pub(in super::super) async fn delete_invitation(
    tx: &mut Tx,
    place: &Place,
    id: &str,
) -> Result<bool> {
    let args = args![&place.org_id, &place.app_id, id];
    Ok(tx.run(DELETE_INVITATION, args).await? > 0)
}
