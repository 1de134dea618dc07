// SPDX-License-Identifier: GPL-2.0-or-later
//! Recursion, hashing, panics that are caught, threads. Rust links with lld, whose segments share pages of the file.
use std::collections::HashMap;
use std::panic;
use std::thread;

#[inline(never)]
fn count(depth: u32, counts: &mut HashMap<String, u64>) -> u64 {
    if depth > 0 {
        return count(depth - 1, counts) + 1;
    }
    let key = format!("key {}", counts.len() % 1000);
    *counts.entry(key).or_insert(0) += 1;
    counts.len() as u64
}

fn sorted(seed: u64) -> u64 {
    let mut values: Vec<u64> = (0..200_000).map(|x| (x * 7919 + seed) % 10_007).collect();
    values.sort();
    values[5]
}

fn main() {
    let mut counts = HashMap::new();
    let mut sum = 0;
    for i in 0..2_000_000u32 {
        sum += count(i % 10, &mut counts);
        if i % 1000 == 0 {
            sum += panic::catch_unwind(|| panic::resume_unwind(Box::new(1))).unwrap_or(2);
        }
    }
    let threads: Vec<_> = (0..4).map(|seed| thread::spawn(move || sorted(seed))).collect();
    sum += threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>();
    println!("{sum}");
}
