//! Cursors of a list whose parts are separate lists of the upstream, for example payments and
//! refunds. The plugin returns the pages of one part after those of another.

use crate::types::Fault;

/// The parts in their order, and their names in cursors. A name contains no colon.
#[derive(Debug, Clone, Copy)]
pub struct Phases<P: 'static>(pub &'static [(&'static str, P)]);

impl<P: Copy + PartialEq + 'static> Phases<P> {
    /// Returns the part of a cursor, and the cursor within that part, which is absent at its start.
    /// A cursor without a known part is a fault: `invalid`.
    pub fn parse<'c>(&self, cursor: Option<&'c str>) -> Result<(P, Option<&'c str>), Fault> {
        let (found, inner) = match cursor {
            None => (self.0.first(), None),
            Some(cursor) => {
                let split = cursor.split_once(':');
                let (name, inner) =
                    split.map_or((cursor, None), |(name, inner)| (name, Some(inner)));
                (self.0.iter().find(|(known, _)| *known == name), inner)
            }
        };
        let (_, phase) =
            found.ok_or_else(|| Fault::invalid("cursor", "not a cursor of this plugin"))?;
        Ok((*phase, inner))
    }

    /// Returns the cursor after a page of a part. `next` is the cursor within that part; without
    /// one, the next part follows.
    pub fn next(&self, phase: P, next: Option<String>) -> Option<String> {
        let mut rest = self.0.iter().skip_while(|(_, known)| *known != phase);
        let (name, _) = rest.next()?;
        match next {
            Some(next) => Some(format!("{name}:{next}")),
            None => rest.next().map(|(name, _)| (*name).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: Phases<u8> = Phases(&[("payments", 1), ("refunds", 2)]);

    #[test]
    fn parts_follow_each_other() {
        let mut cursor: Option<String> = None;
        let mut seen = Vec::new();
        loop {
            let (phase, inner) = PHASES.parse(cursor.as_deref()).unwrap();
            seen.push((phase, inner.map(str::to_owned)));
            // Each part has two pages.
            let next = inner.is_none().then(|| "a:2".to_owned());
            let Some(next) = PHASES.next(phase, next) else { break };
            cursor = Some(next);
        }
        let second = || Some("a:2".to_owned());
        assert_eq!(seen, [(1, None), (1, second()), (2, None), (2, second())]);
        assert_eq!(PHASES.next(1, second()).as_deref(), Some("payments:a:2"));
        assert_eq!(PHASES.next(1, None).as_deref(), Some("refunds"));
        assert_eq!(PHASES.next(3, second()), None);
    }

    #[test]
    fn other_cursors_are_invalid() {
        for cursor in ["", ":", "2", "disputes", "disputes:1", "payments "] {
            let fault = PHASES.parse(Some(cursor)).unwrap_err();
            assert_eq!(fault.field(), Some("cursor"), "{cursor}");
        }
        assert!(Phases::<u8>(&[]).parse(None).is_err());
    }
}
