//! What several figures are asked with.

use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HoursQuery {
    /// 1 to 720, default 24.
    pub hours: Option<i64>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WeekQuery {
    /// 1 to 720, default 168.
    pub hours: Option<i64>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StretchesQuery {
    /// 1 to 720, default 24.
    pub hours: Option<i64>,
    /// `minute`, `hour`, `day`, `week` or `month`; default `hour`.
    pub group_by: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PeriodQuery {
    /// RFC 3339, or a day; by default 30 days before the end.
    pub start_date: Option<String>,
    /// RFC 3339, or a day; now when left out.
    pub end_date: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DatesQuery {
    /// RFC 3339, or a day; by default 30 days before the end, by hours one.
    pub start_date: Option<String>,
    /// RFC 3339, or a day; now when left out.
    pub end_date: Option<String>,
    /// `hour`, `day`, `week` or `month`; default `day`.
    pub group_by: Option<String>,
}
