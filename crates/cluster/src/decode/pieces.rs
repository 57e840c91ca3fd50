//! The objects of one kind while they are read.
//!
//! They are kept in pieces. A vector that grows is copied, and is in memory twice meanwhile; of pieces,
//! each is freed as soon as its objects are moved to the vector of all.

/// The number of objects in a piece.
const SIZE: usize = 512;

/// Objects in the order in which they were added.
#[derive(Debug)]
pub(super) struct Pieces<T>(Vec<Vec<T>>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Pieces<T> {
    pub(super) fn push(&mut self, object: T) {
        match self.0.last_mut().filter(|piece| piece.len() < SIZE) {
            Some(piece) => piece.push(object),
            None => self.0.push(vec![object]),
        }
    }

    /// Removes the last object.
    pub(super) fn pop(&mut self) -> Option<T> {
        let object = self.0.last_mut()?.pop();
        // The first one stays: the objects of a watch come and go one by one.
        if self.0.len() > 1 {
            self.0.pop_if(|piece| piece.is_empty());
        }
        object
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.0.last_mut()?.last_mut()
    }

    /// Adds the objects of another list.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.0.extend(other.0.drain(..).filter(|piece| !piece.is_empty()));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// All objects, in a vector without room for more.
    pub(super) fn into_vec(self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.len());
        self.0.into_iter().for_each(|piece| all.extend(piece));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_in_which_objects_were_added() {
        let count = 3 * SIZE + 7;
        let (mut pieces, mut more) = (Pieces::default(), Pieces::default());
        (0..=SIZE).for_each(|object| pieces.push(object));
        (SIZE + 1..count).for_each(|object| more.push(object));
        pieces.append(&mut more);
        pieces.push(count);
        assert_eq!((pieces.len(), more.len(), more.is_empty()), (count + 1, 0, true));
        assert!(pieces.iter().copied().eq(0..=count));
        assert_eq!((pieces.last_mut().copied(), pieces.pop()), (Some(count), Some(count)));
        let all = pieces.into_vec();
        assert!(all.iter().copied().eq(0..count));
        assert_eq!(all.capacity(), all.len());
    }

    #[test]
    fn the_last_object_is_found_behind_empty_pieces() {
        let mut pieces = Pieces::default();
        (0..=SIZE).for_each(|object| pieces.push(object));
        let popped: Vec<_> = std::iter::from_fn(|| pieces.pop()).collect();
        assert!(popped.into_iter().eq((0..=SIZE).rev()));
        assert_eq!((pieces.pop(), pieces.last_mut()), (None, None));
        assert!(pieces.is_empty());
        pieces.push(5);
        let mut emptied = Pieces::default();
        emptied.push(6);
        emptied.pop();
        pieces.append(&mut emptied);
        assert_eq!(pieces.last_mut().copied(), Some(5));
        assert_eq!(pieces.into_vec(), [5]);
    }
}
