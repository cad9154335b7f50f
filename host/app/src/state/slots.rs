//! Per-slice state: one value of each type, set when the application starts.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
};

#[derive(Default)]
pub struct Slots(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Slots {
    /// Adds the value of a type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Slots {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
        self
    }

    /// Returns the value of a type.
    ///
    /// # Panics
    ///
    /// If the slot is empty: `wiring::open` fills all slots.
    #[must_use]
    pub fn get<T: Any>(&self) -> &T {
        let value = self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value
            .unwrap_or_else(|| panic!("wiring::open did not fill the slot of {}", type_name::<T>()))
    }
}
