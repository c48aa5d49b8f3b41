//! The Merkle tree of RFC 6962: frontier, roots, inclusion, consistency and range proofs.

use super::{Error, Hash, sha256};

/// The hash of a leaf.
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    let mut bytes = Vec::with_capacity(leaf.len() + 1);
    bytes.push(0);
    bytes.extend_from_slice(leaf);
    sha256(&bytes)
}

/// The hash of a node over two subtrees.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [1; 65];
    for (to, from) in bytes.iter_mut().skip(1).zip(left.iter().chain(right)) {
        *to = *from;
    }
    sha256(&bytes)
}

/// The root of the tree without leaves.
#[must_use]
pub fn empty_root() -> Hash {
    sha256(b"")
}

/// The largest power of two below `n`, for `n` of at least 2.
const fn split(n: u64) -> u64 {
    1 << (63 - (n - 1).leading_zeros())
}

/// The right edge of a growing tree: the roots of its maximal complete subtrees, largest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    nodes: Vec<Hash>,
}

impl Frontier {
    /// A frontier that was stored; `None` unless the number of nodes fits the size.
    #[must_use]
    pub fn from_parts(size: u64, nodes: Vec<Hash>) -> Option<Self> {
        (nodes.len() == size.count_ones() as usize).then_some(Self { size, nodes })
    }

    /// How many leaves.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The nodes, largest subtree first.
    #[must_use]
    pub fn nodes(&self) -> &[Hash] {
        &self.nodes
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.nodes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.nodes.push(node);
        self.size += 1;
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> Hash {
        let folded = self
            .nodes
            .iter()
            .rev()
            .copied()
            .reduce(|right, left| node_hash(&left, &right));
        folded.unwrap_or_else(empty_root)
    }
}

/// A tree with every complete subtree at hand: adding a leaf costs one hash on average, a root or
/// a proof about as many as the tree is high, squared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// At height h, the hashes of the complete subtrees of 2^h leaves, in order; the leaves first.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// The tree over these leaf hashes.
    #[must_use]
    pub fn new(leaves: &[Hash]) -> Self {
        let mut tree = Self::default();
        leaves.iter().for_each(|leaf| tree.push(*leaf));
        tree
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        let mut height = 0;
        loop {
            if self.levels.len() == height {
                self.levels.push(Vec::new());
            }
            let Some(level) = self.levels.get_mut(height) else {
                return;
            };
            level.push(node);
            let (pairs, []) = level.as_chunks::<2>() else {
                return;
            };
            let Some([left, right]) = pairs.last() else {
                return;
            };
            node = node_hash(left, right);
            height += 1;
        }
    }

    /// How many leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.leaves().len() as u64
    }

    /// The leaf hashes.
    #[must_use]
    pub fn leaves(&self) -> &[Hash] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }

    /// The hash of the subtree over `[from, to)`, which is one of RFC 6962's splits.
    fn hash(&self, from: u64, to: u64) -> Result<Hash, Error> {
        let out = Error::Range {
            index: to,
            size: self.size(),
        };
        let count = to.checked_sub(from).filter(|_| to <= self.size());
        let count = count.ok_or(out.clone())?;
        if count == 0 {
            return Ok(empty_root());
        }
        if count.is_power_of_two() {
            let level = self.levels.get(count.trailing_zeros() as usize);
            let place = usize::try_from(from / count).ok();
            let node = level.zip(place).and_then(|(level, place)| level.get(place));
            return node.copied().ok_or(out);
        }
        let middle = from + split(count);
        Ok(node_hash(
            &self.hash(from, middle)?,
            &self.hash(middle, to)?,
        ))
    }

    /// The root of the first `size` leaves.
    ///
    /// # Errors
    /// The tree is smaller.
    pub fn root(&self, size: u64) -> Result<Hash, Error> {
        self.hash(0, size)
    }

    /// The path from leaf `index` to the root of the first `size` leaves (RFC 6962 2.1.1).
    ///
    /// # Errors
    /// The leaf is not among them, or the tree is smaller.
    pub fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, Error> {
        if index >= size {
            return Err(Error::Range { index, size });
        }
        let (mut from, mut to) = (0, size);
        let mut path = Vec::new();
        while to - from > 1 {
            let middle = from + split(to - from);
            if index < middle {
                path.push(self.hash(middle, to)?);
                to = middle;
            } else {
                path.push(self.hash(from, middle)?);
                from = middle;
            }
        }
        path.reverse();
        Ok(path)
    }

    /// The proof that the first `old` leaves are a prefix of the first `size` (RFC 6962 2.1.2);
    /// empty where one of them is empty or both are the same.
    ///
    /// # Errors
    /// `old` is larger than `size`, or the tree is smaller.
    pub fn consistency(&self, old: u64, size: u64) -> Result<Vec<Hash>, Error> {
        if old > size || size > self.size() {
            return Err(Error::Range { index: old, size });
        }
        if old == 0 || old == size {
            return Ok(Vec::new());
        }
        let (mut from, mut to) = (0, size);
        let mut proof = Vec::new();
        while to != old {
            let middle = from + split(to - from);
            if old <= middle {
                proof.push(self.hash(middle, to)?);
                to = middle;
            } else {
                proof.push(self.hash(from, middle)?);
                from = middle;
            }
        }
        // RFC 6962: the verifier knows the old root, so it is left out where it is a whole subtree.
        if from != 0 {
            proof.push(self.hash(from, to)?);
        }
        proof.reverse();
        Ok(proof)
    }

    /// The hashes of the maximal subtrees outside `[from, to)` of the tree of `size`, in pre-order:
    /// those before and those after (audit-bundle 2, `range`).
    ///
    /// # Errors
    /// Not `from < to <= size`, or the tree is smaller.
    pub fn outside(&self, from: u64, to: u64, size: u64) -> Result<(Vec<Hash>, Vec<Hash>), Error> {
        let (left, right) = range_spans(from, to, size)?;
        let hash = |spans: Vec<(u64, u64)>| spans.iter().map(|(a, b)| self.hash(*a, *b)).collect();
        let left: Result<Vec<_>, _> = hash(left);
        let right: Result<Vec<_>, _> = hash(right);
        Ok((left?, right?))
    }
}

type Spans = Vec<(u64, u64)>;

/// The maximal subtrees before and after `[from, to)`.
fn range_spans(from: u64, to: u64, size: u64) -> Result<(Spans, Spans), Error> {
    if from >= to || to > size {
        return Err(Error::Range { index: to, size });
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut stack = vec![(0, size)];
    while let Some((a, b)) = stack.pop() {
        if b <= from {
            left.push((a, b));
        } else if a >= to {
            right.push((a, b));
        } else if b - a > 1 && !(a >= from && b <= to) {
            let middle = a + split(b - a);
            stack.push((middle, b));
            stack.push((a, middle));
        }
    }
    Ok((left, right))
}

/// How many hashes lie before and after `[from, to)` in the tree of `size`.
///
/// # Errors
/// Not `from < to <= size`.
pub fn range_hashes(from: u64, to: u64, size: u64) -> Result<(usize, usize), Error> {
    range_spans(from, to, size).map(|(left, right)| (left.len(), right.len()))
}

/// The root of the tree of `size` from the leaves `[from, from + leaves.len())` and the subtree
/// hashes outside of them.
///
/// # Errors
/// The hash lists have not the length that the range gives.
pub fn root_of_range(
    from: u64,
    leaves: &[Hash],
    size: u64,
    left: &[Hash],
    right: &[Hash],
) -> Result<Hash, Error> {
    let to = from + leaves.len() as u64;
    if range_hashes(from, to, size)? != (left.len(), right.len()) {
        return Err(Error::Malformed("range"));
    }
    let mut parts = Parts {
        from,
        to,
        left: left.iter(),
        leaves: leaves.iter(),
        right: right.iter(),
    };
    parts.walk(0, size).ok_or(Error::Malformed("range"))
}

/// The three lists, each taken in the order of the walk.
struct Parts<'a> {
    from: u64,
    to: u64,
    left: std::slice::Iter<'a, Hash>,
    leaves: std::slice::Iter<'a, Hash>,
    right: std::slice::Iter<'a, Hash>,
}

impl Parts<'_> {
    fn walk(&mut self, a: u64, b: u64) -> Option<Hash> {
        if b <= self.from {
            return self.left.next().copied();
        }
        if a >= self.to {
            return self.right.next().copied();
        }
        if b - a == 1 {
            return self.leaves.next().copied();
        }
        let middle = a + split(b - a);
        let left = self.walk(a, middle)?;
        let right = self.walk(middle, b)?;
        Some(node_hash(&left, &right))
    }
}

/// The root that an inclusion path leads to; `None` where its length does not fit.
#[must_use]
pub fn inclusion_root(leaf: Hash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    // From the root down, so that each step's side is known; the path is listed from the leaf up.
    let (mut from, mut to) = (0, size);
    let mut sides = Vec::new();
    while to - from > 1 {
        let middle = from + split(to - from);
        let on_left = index < middle;
        sides.push(on_left);
        if on_left {
            to = middle;
        } else {
            from = middle;
        }
    }
    if sides.len() != path.len() {
        return None;
    }
    let steps = sides.iter().rev().zip(path);
    Some(steps.fold(leaf, |node, (on_left, other)| {
        if *on_left {
            node_hash(&node, other)
        } else {
            node_hash(other, &node)
        }
    }))
}

/// The root of `size` that a consistency proof leads to from `old_root` over `old` leaves, where
/// the proof also rebuilds `old_root`; `None` otherwise. `new_root` answers where no hash is
/// needed: an empty old tree is a prefix of any, and equal sizes need equal roots.
#[must_use]
pub fn consistency_root(
    old: u64,
    old_root: &Hash,
    size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Option<Hash> {
    if old == 0 {
        return (proof.is_empty() && *old_root == empty_root()).then_some(*new_root);
    }
    if old == size {
        return (proof.is_empty() && old_root == new_root).then_some(*new_root);
    }
    if old > size {
        return None;
    }
    let (mut from, mut to) = (0, size);
    let mut sides = Vec::new();
    while to != old {
        let middle = from + split(to - from);
        let on_left = old <= middle;
        sides.push(on_left);
        if on_left {
            to = middle;
        } else {
            from = middle;
        }
    }
    let (start, rest) = if from == 0 {
        (old_root, proof)
    } else {
        let (first, rest) = proof.split_first()?;
        (first, rest)
    };
    if rest.len() != sides.len() {
        return None;
    }
    let (mut old_side, mut new_side) = (*start, *start);
    for (on_left, other) in sides.iter().rev().zip(rest) {
        if *on_left {
            new_side = node_hash(&new_side, other);
        } else {
            old_side = node_hash(other, &old_side);
            new_side = node_hash(other, &new_side);
        }
    }
    (old_side == *old_root).then_some(new_side)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(n: u64) -> Vec<Hash> {
        (0..n).map(|i| leaf_hash(&i.to_be_bytes())).collect()
    }

    /// RFC 6962 2.1 word for word, as the reference.
    fn mth(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => empty_root(),
            [one] => *one,
            many => {
                let k = many.len().next_power_of_two() / 2;
                node_hash(&mth(&many[..k]), &mth(&many[k..]))
            }
        }
    }

    #[test]
    fn the_known_roots_of_rfc_6962_implementations_come_out() {
        // The inputs and roots of the test vectors that every Certificate Transparency log shares.
        let inputs: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let hashes = inputs.map(leaf_hash);
        let root = |n| data_encoding::HEXLOWER.encode(&Tree::new(&hashes).root(n).unwrap());
        assert_eq!(
            root(0),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            root(1),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
        assert_eq!(
            root(8),
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
        );
    }

    #[test]
    fn the_frontier_gives_the_root_of_every_size() {
        let all = leaves(70);
        let mut frontier = Frontier::default();
        for n in 0..=70 {
            assert_eq!(frontier.root(), mth(&all[..n]), "{n}");
            assert_eq!(Tree::new(&all).root(n as u64).unwrap(), mth(&all[..n]));
            let stored = Frontier::from_parts(n as u64, frontier.nodes().to_vec());
            assert_eq!(stored.as_ref(), Some(&frontier));
            if n < 70 {
                frontier.push(all[n]);
            }
        }
        assert_eq!(Frontier::from_parts(3, vec![[0; 32]]), None);
    }

    #[test]
    fn every_inclusion_path_leads_to_its_root_and_to_no_other() {
        let all = leaves(20);
        let tree = Tree::new(&all);
        for size in 1..=20 {
            for index in 0..size {
                let path = tree.inclusion(index, size).unwrap();
                let root = Some(tree.root(size).unwrap());
                let leaf = all[index as usize];
                assert_eq!(inclusion_root(leaf, index, size, &path), root);
                assert_ne!(inclusion_root([0; 32], index, size, &path), root);
                if index > 0 {
                    assert_ne!(inclusion_root(leaf, index - 1, size, &path), root);
                }
                let longer = [path.as_slice(), &[[0; 32]]].concat();
                assert_eq!(inclusion_root(leaf, index, size, &longer), None);
            }
        }
        assert!(tree.inclusion(20, 20).is_err());
    }

    #[test]
    fn every_consistency_proof_holds_and_breaks_on_any_change() {
        let all = leaves(20);
        let tree = Tree::new(&all);
        for size in 0..=20 {
            for old in 0..=size {
                let proof = tree.consistency(old, size).unwrap();
                let (was, is) = (tree.root(old).unwrap(), tree.root(size).unwrap());
                let judge =
                    |was: &Hash, proof: &[Hash]| consistency_root(old, was, size, &is, proof);
                assert_eq!(judge(&was, &proof), Some(is), "{old} {size}");
                assert_ne!(judge(&[0; 32], &proof), Some(is), "{old} {size}");
                let longer = [proof.as_slice(), &[[0; 32]]].concat();
                assert_eq!(judge(&was, &longer), None);
                for i in 0..proof.len() {
                    let mut bad = proof.clone();
                    bad[i][0] ^= 1;
                    assert_ne!(judge(&was, &bad), Some(is));
                }
            }
        }
        assert!(tree.consistency(5, 4).is_err());
    }

    #[test]
    fn every_range_gives_the_root_from_its_leaves_and_the_hashes_outside() {
        let all = leaves(17);
        let tree = Tree::new(&all);
        for size in 1..=17 {
            for from in 0..size {
                for to in from + 1..=size {
                    let (left, right) = tree.outside(from, to, size).unwrap();
                    let inside = &all[from as usize..to as usize];
                    let root = root_of_range(from, inside, size, &left, &right);
                    assert_eq!(root, tree.root(size), "{from} {to} {size}");
                    let smaller = root_of_range(from, inside, to, &left, &[]);
                    assert_eq!(
                        smaller,
                        tree.root(to),
                        "the left hashes serve every smaller head"
                    );
                    let more = [left.as_slice(), &[[0; 32]]].concat();
                    assert!(root_of_range(from, inside, size, &more, &right).is_err());
                }
            }
        }
    }
}
