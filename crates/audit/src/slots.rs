//! Room for many small arrays of one length.

/// An index of a slot fits a cell's word.
pub(crate) const SLOTS_MAX: usize = 1 << 30;

/// Arrays of one length in one piece of memory, with those that were given back used again first.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    stride: usize,
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy + Default> Slots<T> {
    pub(crate) const fn new(stride: usize) -> Self {
        Self { stride, items: Vec::new(), free: Vec::new() }
    }

    /// A slot whose items are all the default.
    ///
    /// # Panics
    /// Beyond [`SLOTS_MAX`] slots, which take more memory than there is.
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.at_mut(slot).fill(T::default());
            return slot;
        }
        let slot = self.items.len() / self.stride;
        assert!(slot < SLOTS_MAX, "half a terabyte of slots is more than there is");
        self.items.resize(self.items.len() + self.stride, T::default());
        u32::try_from(slot).expect("SLOTS_MAX fits")
    }

    pub(crate) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Whether every slot that a word can name is in use.
    pub(crate) const fn is_full(&self) -> bool {
        self.free.is_empty() && self.items.len() / self.stride >= SLOTS_MAX
    }

    pub(crate) fn at(&self, slot: u32) -> &[T] {
        let start = slot as usize * self.stride;
        &self.items[start..start + self.stride]
    }

    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut [T] {
        let start = slot as usize * self.stride;
        &mut self.items[start..start + self.stride]
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }

    #[cfg(test)]
    pub(crate) const fn in_use(&self) -> usize {
        self.items.len() / self.stride - self.free.len()
    }
}
