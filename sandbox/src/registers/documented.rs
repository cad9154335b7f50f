//! The test identities that the upstreams document. The ending of their numbers has no meaning.

use chrono::NaiveDate;

use super::kinds::Kind;

pub(super) struct TestIdentity {
    pub kind: Kind,
    pub key: &'static str,
    pub first_name: &'static str,
    pub middle_name: &'static str,
    pub last_name: &'static str,
    pub female: bool,
    born: (i32, u32, u32),
}

impl TestIdentity {
    pub(super) fn full_name(&self) -> String {
        format!("{} {} {}", self.first_name, self.middle_name, self.last_name)
    }

    pub(super) fn birth_date(&self) -> Option<NaiveDate> {
        let (year, month, day) = self.born;
        NaiveDate::from_ymd_opt(year, month, day)
    }
}

pub(super) fn find(kind: Kind, key: &str) -> Option<&'static TestIdentity> {
    TEST_IDENTITIES.iter().find(|known| known.kind == kind && known.key == key)
}

/// Returns whether the test identity with this number, of any kind, is a woman.
pub(super) fn is_woman(key: &str) -> Option<bool> {
    TEST_IDENTITIES.iter().find(|known| known.key == key).map(|known| known.female)
}

const fn woman(
    kind: Kind,
    key: &'static str,
    [first_name, middle_name, last_name]: [&'static str; 3],
    born: (i32, u32, u32),
) -> TestIdentity {
    TestIdentity { kind, key, first_name, middle_name, last_name, female: true, born }
}

const fn man(
    kind: Kind,
    key: &'static str,
    names: [&'static str; 3],
    born: (i32, u32, u32),
) -> TestIdentity {
    TestIdentity { female: false, ..woman(kind, key, names, born) }
}

pub(super) static TEST_IDENTITIES: [TestIdentity; 16] = [
    woman(Kind::Bvn, "54651333604", ["Teniola", "Ireti", "Balogun"], (1993, 5, 6)),
    man(Kind::Bvn, "22222222222", ["Somto", "Chukwudi", "Eze"], (1988, 6, 28)),
    man(Kind::Nin, "12345678909", ["Suleiman", "Haruna", "Abdullahi"], (1991, 2, 17)),
    woman(Kind::Nin, "70123456789", ["Blessing", "Enitan", "Johnson"], (1993, 6, 10)),
    man(Kind::Vnin, "AA1234567890123B", ["Suleiman", "Haruna", "Abdullahi"], (1991, 2, 17)),
    man(Kind::License, "AAD23208212298", ["Test", "Ade", "Test"], (1999, 12, 21)),
    man(Kind::License, "AAD2320823198", ["Test", "Ade", "Test"], (1999, 12, 21)),
    man(Kind::License, "ABC12345YZ00", ["John", "Ade", "Doe"], (1990, 1, 1)),
    woman(Kind::Passport, "A00400000", ["Sade", "Mercy", "Test"], (1980, 12, 22)),
    man(Kind::Passport, "B50000947", ["Ken", "Obinna", "Test"], (1994, 8, 21)),
    woman(Kind::Voter, "987F545AJ67890", ["Funke", "Yetunde", "Alabi"], (1985, 3, 30)),
    man(Kind::Company, "092932", ["Segun", "Dele", "Akande"], (1972, 9, 14)),
    man(Kind::Phone, "2348082838283", ["Ahmed", "Bashir", "Yusuf"], (1989, 11, 2)),
    woman(Kind::GhPassport, "G0000575", ["Akua", "Serwaa", "Appiah"], (1987, 4, 12)),
    man(Kind::GhSsnit, "C987464748983", ["Kwesi", "Paa", "Arthur"], (1979, 10, 3)),
    woman(Kind::GhVoter, "9001332866", ["Adjoa", "Nana", "Sarpong"], (1990, 7, 19)),
];
