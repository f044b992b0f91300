//! The table shape that named resources share: an id and a name unique within an owner, and the wire type as JSON.
//!
//! The owner is the namespace of a namespaced resource and the organization of the others; no statement can be run
//! without it.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use super::{Arg, Cells, Db, Json, Row, Tx};
use crate::{
    args,
    error::{ApiError, Result},
    list::{ListParams, Mark, Page, Window},
    words::one,
};

/// The statements of one table; made by [`table!`].
pub struct TableSql {
    pub resource: &'static str,
    pub insert: &'static str,
    pub find: &'static str,
    pub page: &'static str,
    pub all: &'static str,
    pub count: &'static str,
    pub hold: &'static str,
    pub update: &'static str,
    pub delete: &'static str,
    pub delete_all: &'static str,
}

/// A stored resource.
#[derive(Debug, Clone)]
pub struct Record<T: DeserializeOwned> {
    pub id: String,
    pub name: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub data: Json<T>,
}

impl<T: DeserializeOwned> Record<T> {
    /// The resource, with where it stands in a list.
    pub fn marked(self) -> (T, Mark) {
        (self.data.0, (self.created_at, self.id))
    }
}

impl<T: DeserializeOwned> std::ops::Deref for Record<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data.0
    }
}

impl<T: DeserializeOwned + Send + 'static> Row for Record<T> {
    fn read(mut cells: Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.take()?,
            name: cells.take()?,
            created_at: cells.take()?,
            updated_at: cells.take()?,
            data: cells.take()?,
        })
    }
}

/// A table of resources whose model is the wire type `T`.
pub struct Table<T> {
    sql: &'static TableSql,
    model: std::marker::PhantomData<fn() -> T>,
}

/// Declares the statements of a table with the columns `id, owner, name, created_at, updated_at, data`.
#[macro_export]
macro_rules! table {
    ($vis:vis static $name:ident: $model:ty = $table:literal, $resource:literal) => {
        $vis static $name: $crate::db::Table<$model> = $crate::db::Table::new({
            $crate::sql! {
                const INSERT = concat!("INSERT INTO ", $table, " (id, owner, name, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6)");
                const FIND = concat!("SELECT id, name, created_at, updated_at, data FROM ", $table, " WHERE owner = $1 AND (id = $2 OR name = $2) ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1");
                const PAGE = concat!("SELECT id, name, created_at, updated_at, data FROM ", $table, " WHERE owner = $1 AND created_at <= $4 AND (created_at < $4 OR id > $5) ORDER BY created_at DESC, id LIMIT $2 OFFSET $3");
                const ALL = concat!("SELECT id, name, created_at, updated_at, data FROM ", $table, " WHERE owner = $1 ORDER BY created_at DESC, id");
                const COUNT = concat!("SELECT CAST(COUNT(*) AS BIGINT) FROM ", $table, " WHERE owner = $1");
                const HOLD = concat!("UPDATE ", $table, " SET updated_at = updated_at WHERE owner = $1 AND (id = $2 OR name = $2)");
                const UPDATE = concat!("UPDATE ", $table, " SET name = $3, updated_at = $4, data = $5 WHERE owner = $1 AND id = $2");
                const DELETE = concat!("DELETE FROM ", $table, " WHERE owner = $1 AND id = $2");
                const DELETE_ALL = concat!("DELETE FROM ", $table, " WHERE owner = $1");
            }
            static SQL: $crate::db::TableSql = $crate::db::TableSql {
                resource: $resource, insert: INSERT, find: FIND, page: PAGE, all: ALL, count: COUNT, hold: HOLD,
                update: UPDATE, delete: DELETE, delete_all: DELETE_ALL,
            };
            &SQL
        });
    };
}

impl<T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static> Table<T> {
    #[doc(hidden)]
    pub const fn new(sql: &'static TableSql) -> Self {
        Self {
            sql,
            model: std::marker::PhantomData,
        }
    }

    /// Inserts; a name taken within the owner is a conflict.
    pub async fn insert(
        &self,
        tx: &mut Tx,
        owner: &str,
        id: &str,
        name: &str,
        now: i64,
        data: &T,
    ) -> Result<()> {
        let taken = tx
            .one::<Record<T>>(self.sql.find, args![owner, name])
            .await?;
        if taken.is_some() {
            return Err(self.name_taken(name));
        }
        tx.run(
            self.sql.insert,
            args![id, owner, name, now, now, Arg::json(data)],
        )
        .await?;
        Ok(())
    }

    /// By id, else by name.
    pub async fn find(&self, db: &Db, owner: &str, identifier: &str) -> Result<Record<T>> {
        let found = db.one(self.sql.find, args![owner, identifier]).await?;
        found.ok_or_else(|| ApiError::not_found(self.sql.resource, identifier))
    }

    /// As [`Table::find`], from memory if nothing changed: for what is asked for through the resource, not for showing or
    /// changing the resource itself.
    pub async fn known(&self, db: &Db, owner: &str, identifier: &str) -> Result<Arc<Record<T>>> {
        let key = (self.sql.resource, owner.to_owned(), identifier.to_owned());
        if let Some(record) = db.known().get(&key) {
            return Ok(record);
        }
        let changes = db.known().changes();
        let record = Arc::new(self.find(db, owner, identifier).await?);
        db.known().keep(key, changes, record.clone());
        Ok(record)
    }

    /// As [`Table::find`], inside a transaction.
    pub async fn find_in(&self, tx: &mut Tx, owner: &str, identifier: &str) -> Result<Record<T>> {
        let found = tx.one(self.sql.find, args![owner, identifier]).await?;
        found.ok_or_else(|| ApiError::not_found(self.sql.resource, identifier))
    }

    /// As [`Table::find_in`]; nobody else changes the resource until the transaction ends. What is read, edited and written
    /// back begins here: on PostgreSQL two transactions that read beside each other would each undo what the other wrote.
    pub async fn hold(&self, tx: &mut Tx, owner: &str, identifier: &str) -> Result<Record<T>> {
        tx.run(self.sql.hold, args![owner, identifier]).await?;
        self.find_in(tx, owner, identifier).await
    }

    /// As [`Table::hold`], of those of the owner that are wanted, in the order of their ids, so that no two wait for each
    /// other. A transaction that pushes events holds what it changes before the first of them, which is a lock too.
    pub async fn hold_some(
        &self,
        tx: &mut Tx,
        owner: &str,
        wanted: impl Fn(&Record<T>) -> bool + Send,
    ) -> Result<Vec<Record<T>>> {
        let mut all = self.all_in(tx, owner).await?;
        all.retain(wanted);
        all.sort_by(|one, other| one.id.cmp(&other.id));
        let mut held = Vec::with_capacity(all.len());
        for record in all {
            match self.hold(tx, owner, &record.id).await {
                Ok(record) => held.push(record),
                // Removed meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(held)
    }

    /// Every resource of the owner, newest first.
    pub async fn all(&self, db: &Db, owner: &str) -> Result<Vec<Record<T>>> {
        db.all(self.sql.all, args![owner]).await
    }

    /// As [`Table::all`], inside a transaction.
    pub async fn all_in(&self, tx: &mut Tx, owner: &str) -> Result<Vec<Record<T>>> {
        tx.all(self.sql.all, args![owner]).await
    }

    pub async fn count(&self, db: &Db, owner: &str) -> Result<i64> {
        db.number(self.sql.count, args![owner]).await
    }

    pub async fn count_in(&self, tx: &mut Tx, owner: &str) -> Result<i64> {
        tx.number(self.sql.count, args![owner]).await
    }

    /// One page. Without search, filters and sort the database pages; with them the owner's resources (bounded by its
    /// quota) are read and filtered here, by the one filter grammar.
    pub async fn list(&self, db: &Db, owner: &str, params: &ListParams) -> Result<Page<T>> {
        if params.is_plain() {
            let Window {
                limit,
                offset,
                at,
                id,
            } = params.window();
            let records: Vec<Record<T>> = db
                .all(self.sql.page, args![owner, limit, offset, at, id])
                .await?;
            let total = if params.include_total {
                Some(self.count(db, owner).await?)
            } else {
                None
            };
            return Ok(Page::from_window(
                records.into_iter().map(Record::marked).collect(),
                params,
                total,
            ));
        }
        let records = self.all(db, owner).await?;
        Page::from_marked(records.into_iter().map(Record::marked).collect(), params)
    }

    /// As [`Table::list`], of those that are kept: for keys whose scopes cover some resources only.
    pub async fn list_some(
        &self,
        db: &Db,
        owner: &str,
        params: &ListParams,
        keep: impl Fn(&str) -> bool,
    ) -> Result<Page<T>> {
        let mut records = self.all(db, owner).await?;
        records.retain(|record| keep(&record.id));
        Page::from_marked(records.into_iter().map(Record::marked).collect(), params)
    }

    /// Replaces name and data.
    pub async fn update(
        &self,
        tx: &mut Tx,
        owner: &str,
        id: &str,
        name: &str,
        now: i64,
        data: &T,
    ) -> Result<()> {
        let taken = tx
            .one::<Record<T>>(self.sql.find, args![owner, name])
            .await?;
        if taken.is_some_and(|other| other.id != id && other.name == name) {
            return Err(self.name_taken(name));
        }
        let changed = tx
            .run(
                self.sql.update,
                args![owner, id, name, now, Arg::json(data)],
            )
            .await?;
        if changed == 0 {
            Err(ApiError::not_found(self.sql.resource, id))
        } else {
            Ok(())
        }
    }

    pub async fn delete(&self, tx: &mut Tx, owner: &str, id: &str) -> Result<()> {
        let changed = tx.run(self.sql.delete, args![owner, id]).await?;
        if changed == 0 {
            Err(ApiError::not_found(self.sql.resource, id))
        } else {
            Ok(())
        }
    }

    pub async fn delete_all(&self, tx: &mut Tx, owner: &str) -> Result<u64> {
        tx.run(self.sql.delete_all, args![owner]).await
    }

    fn name_taken(&self, name: &str) -> ApiError {
        ApiError::already_exists(
            "name_taken",
            format!("{} named '{name}' exists already", one(self.sql.resource)),
        )
        .with("name", name)
    }
}
