//! Every plugin of this repository as a component: what `cargo sandbox` installs, and what the tests are made of.
//!
//! The build script finds them: a folder with a `manifest.json` in `plugins/` is built in, one in `tests/guests/` is a
//! guest of the tests. Per component there is a constant of its bytes ([`PROVIDER_A`]), and [`foreach_component!`] names
//! them all, so that a test can demand that each has a test:
//!
//! ```
//! fn africastalking() {}
//! fn atlantis() {}
//! fn ghana() {}
//! fn nigeria() {}
//! fn provider_a() {}
//! fn provider_b() {}
//! fn provider_c() {}
//! fn sprout() {}
//! fn termii() {}
//! fn twilio() {}
//! fn unruly() {}
//! macro_rules! has_a_test {
//!     ($name:ident) => {
//!         let _: fn() = $name;
//!     };
//! }
//! artifacts::foreach_component!(has_a_test);
//! ```

/// A plugin, ready to be installed.
#[derive(Clone, Copy)]
pub struct Component {
    /// The package's, the folder's and the manifest's name.
    pub name: &'static str,
    /// The component's binary, manifest included.
    pub wasm: &'static [u8],
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.wasm.len())
    }
}

include!(concat!(env!("OUT_DIR"), "/components.rs"));
