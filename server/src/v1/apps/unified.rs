//! Two texts beside each other, as `diff -u` writes them.

use std::ops::Range;

/// Lines that are told around a change.
const CONTEXT: usize = 3;

/// Pairs of lines that are compared. Of longer texts all between the first and the last difference counts as changed.
const PAIRS: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    Gone,
    New,
}

/// What changed in the text at `path`; empty when nothing did. A text that is empty on one side was not there.
pub(super) fn unified(path: &str, old: &str, new: &str) -> String {
    let side = |start: &str, text: &str| match text.is_empty() {
        true => "/dev/null".to_owned(),
        false => format!("{start}/{path}"),
    };
    let lines = steps(old, new);
    let mut told = String::new();
    for hunk in hunks(&lines) {
        if told.is_empty() {
            told = format!("--- {}\n+++ {}\n", side("a", old), side("b", new));
        }
        let (gone, made) = (
            window(&lines, &hunk, Step::New),
            window(&lines, &hunk, Step::Gone),
        );
        told.push_str(&format!("@@ -{gone} +{made} @@\n"));
        for (step, line) in &lines[hunk] {
            told.push(match step {
                Step::Same => ' ',
                Step::Gone => '-',
                Step::New => '+',
            });
            told.push_str(line);
            if !line.ends_with('\n') {
                told.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    told
}

/// First line and number of lines that a hunk has on one side: the lines that are not only on the other.
fn window(lines: &[(Step, &str)], hunk: &Range<usize>, other: Step) -> String {
    let count = |some: &[(Step, &str)]| some.iter().filter(|(step, _)| *step != other).count();
    let (before, within) = (count(&lines[..hunk.start]), count(&lines[hunk.clone()]));
    // A side without lines is told by the one before it.
    format!("{},{within}", before + usize::from(within > 0))
}

/// Changes with what is around them; those that touch are told together.
fn hunks(lines: &[(Step, &str)]) -> Vec<Range<usize>> {
    let mut hunks: Vec<Range<usize>> = Vec::new();
    for (at, (step, _)) in lines.iter().enumerate() {
        if *step == Step::Same {
            continue;
        }
        let (start, end) = (
            at.saturating_sub(CONTEXT),
            (at + 1 + CONTEXT).min(lines.len()),
        );
        match hunks.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

/// The lines of both texts in one order, each with what became of it.
fn steps<'t>(old: &'t str, new: &'t str) -> Vec<(Step, &'t str)> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let first = old.iter().zip(&new).take_while(same).count();
    let (a, b) = (&old[first..], &new[first..]);
    let last = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    let (a, b) = (&a[..a.len() - last], &b[..b.len() - last]);
    let mut steps: Vec<_> = old[..first]
        .iter()
        .map(|line| (Step::Same, *line))
        .collect();
    middle(a, b, &mut steps);
    let rest = old[old.len() - last..].iter();
    steps.extend(rest.map(|line| (Step::Same, *line)));
    steps
}

/// What lies between the common ends: as many lines as can be stay.
fn middle<'t>(a: &[&'t str], b: &[&'t str], steps: &mut Vec<(Step, &'t str)>) {
    let all = |lines: &[&'t str], step: Step| -> Vec<(Step, &'t str)> {
        lines.iter().map(|line| (step, *line)).collect()
    };
    if a.len().saturating_mul(b.len()) > PAIRS {
        steps.extend(all(a, Step::Gone));
        steps.extend(all(b, Step::New));
        return;
    }
    // How many lines the ends from here on have in common, row by row.
    let wide = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * wide];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * wide + j] = if a[i] == b[j] {
                common[(i + 1) * wide + j + 1] + 1
            } else {
                common[(i + 1) * wide + j].max(common[i * wide + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            steps.push((Step::Same, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * wide + j] >= common[i * wide + j + 1] {
            steps.push((Step::Gone, a[i]));
            i += 1;
        } else {
            steps.push((Step::New, b[j]));
            j += 1;
        }
    }
    steps.extend(all(&a[i..], Step::Gone));
    steps.extend(all(&b[j..], Step::New));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_with_what_is_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let new = "a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nk\nl";
        let expected = "--- a/x.js\n+++ b/x.js\n@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n\
                        @@ -9,3 +9,4 @@\n i\n j\n k\n+l\n\\ No newline at end of file\n";
        assert_eq!(unified("x.js", old, new), expected);
        assert_eq!(unified("x.js", old, old), "");
        assert_eq!(
            unified("x.js", "", "a\nb\n"),
            "--- /dev/null\n+++ b/x.js\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        assert_eq!(
            unified("x.js", "a\r\n", ""),
            "--- a/x.js\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\r\n"
        );
    }

    #[test]
    fn as_many_lines_as_can_be_stay() {
        let told = |old: &str, new: &str| -> String {
            let line = |(step, line): (Step, &str)| match step {
                Step::Same => line.to_owned(),
                Step::Gone => format!("-{line}"),
                Step::New => format!("+{line}"),
            };
            let text = |words: &str| words.replace(' ', "\n") + "\n";
            let (old, new) = (text(old), text(new));
            let steps = steps(&old, &new).into_iter().map(line);
            steps.collect::<String>().replace('\n', " ")
        };
        assert_eq!(told("a b c", "a x c"), "a -b +x c ");
        assert_eq!(told("a b c d", "b c a d"), "-a b c +a d ");
        assert_eq!(told("a a", "a a a"), "a a +a ");
        // Too many to be compared: all in between is told as changed.
        let many = |word: &str| vec![word; 1_500].join(" ");
        let long = told(&format!("{} z", many("a")), &format!("{} z", many("b")));
        assert!(long.starts_with("-a -a") && long.ends_with("+b z "));
    }
}
