//! Pages of lists.

use sqlx::FromRow;

use super::Tx;
use crate::{
    clock::{DAY_MS, Timestamp},
    error,
    store::{DynamicStatement, Record, Result},
    values::{
        id::CompanyId,
        listing::{
            ListOrder, ListPage, PageRequest, Period, SortOrder, unknown_after, unstable_order,
        },
    },
};

/// The number of items of a list.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct ListTotal {
    pub number: i64,
    /// The first and last day on which items were created, if they are known.
    first_day: Option<Timestamp>,
    last_day: Option<Timestamp>,
}

/// The place of an item in lists of its kind.
#[derive(Clone, Debug, FromRow)]
pub struct ListPosition {
    pub id: String,
    pub created_at: Timestamp,
}

impl Tx {
    /// Returns a page of a list. `filter` completes a `SELECT` with table and conditions.
    pub async fn list<T: Record>(
        &mut self,
        filter: impl Fn(&'static str) -> DynamicStatement,
        select: &'static str,
        order_by: &'static str,
        page: PageRequest,
    ) -> Result<ListPage<T>> {
        let total = self.dynamic(&filter("SELECT COUNT(*)")).value().await?;
        let items = self.dynamic(&filter(select).append_page(order_by, page)).all().await?;
        Ok(page.to_list_page(total, items))
    }

    /// Finds the item after which a list begins, by `select` with parameters for company and id.
    /// 400 if there is none, or if the place of an item in this order can change.
    pub async fn find_position(
        &mut self,
        select: &'static str,
        company_id: &CompanyId,
        order: ListOrder,
        after: Option<&str>,
    ) -> error::Result<Option<ListPosition>> {
        let Some(id) = after else { return Ok(None) };
        if matches!(order, ListOrder::Updated(_)) {
            return Err(unstable_order());
        }
        let found = self.sql(select).bind(company_id).bind(id).optional().await?;
        found.ok_or_else(unknown_after).map(Some)
    }

    /// Returns a page of a list with a known total. `items` returns the statement for the page,
    /// which needs only those items that were created in a period.
    pub async fn list_counted<T: Record>(
        &mut self,
        total: ListTotal,
        page: PageRequest,
        items: impl FnOnce(Option<Period>) -> DynamicStatement,
    ) -> Result<ListPage<T>> {
        let ListTotal { number, first_day, last_day } = total;
        if page.offset() >= number {
            return Ok(page.to_list_page(number, Vec::new()));
        }
        let created = first_day.zip(last_day);
        let created = created.map(|(from, last)| Period { from, before: last.plus_ms(DAY_MS) });
        let items = self.dynamic(&items(created)).all().await?;
        Ok(page.to_list_page(number, items))
    }
}

impl DynamicStatement {
    fn append_page(self, order_by: &'static str, page: PageRequest) -> DynamicStatement {
        let sql = self.append(order_by).append(" LIMIT ").bind(page.items_to_read());
        sql.append(" OFFSET ").bind(page.offset())
    }

    /// Appends the condition for items after a known one.
    pub fn append_after(self, order: ListOrder, after: Option<&ListPosition>) -> DynamicStatement {
        let Some(ListPosition { id, created_at }) = after else { return self };
        let sql = self.append(match order {
            ListOrder::Created(SortOrder::Ascending) => " AND (created_at, id) > (",
            _ => " AND (created_at, id) < (",
        });
        sql.bind(*created_at).append(", ").bind(id).append(")")
    }

    /// Completes `SELECT … FROM (SELECT id AS found FROM … WHERE …` to a page of rows: finds their
    /// ids by an index alone, whose rows are short. `rows` is `page CROSS JOIN TABLE WHERE id =
    /// found AND company_id = `.
    pub fn append_page_by_ids(
        self,
        order_by: &'static str,
        page: PageRequest,
        rows: &'static str,
        company_id: &CompanyId,
    ) -> DynamicStatement {
        let sql = self.append_page(order_by, page).append(") ").append(rows);
        sql.bind(company_id).append(order_by)
    }
}
