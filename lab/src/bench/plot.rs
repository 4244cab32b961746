// SPDX-License-Identifier: Apache-2.0
//! Plots as values, written as SVG: bars side by side, or lines over a number.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

const WIDTH: f64 = 820.0;
const MARGIN: f64 = 60.0;
const BAR_HEIGHT: f64 = 13.0;
const LABELS: f64 = 250.0;
const LINES_HEIGHT: f64 = 420.0;
/// Blue and orange are ours, grey the papers'; all can be told apart without colours by their order in the legend.
const COLOURS: [&str; 6] = ["#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#975a16"];
const PAPER_COLOUR: &str = "#a0aec0";

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    file: String,
    title: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Bars { unit: &'static str, legend: [&'static str; 2], bars: Vec<Bar> },
    Lines { x: &'static str, y: &'static str, is_logarithmic: bool, series: Vec<Series> },
}

#[derive(Clone, Debug, PartialEq)]
struct Bar {
    name: String,
    ours: Option<[f64; 3]>,
    paper: Option<f64>,
}

/// One line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points by rising x.
    pub points: Vec<(f64, f64)>,
    /// Whether it is from a paper.
    pub is_paper: bool,
}

impl Plot {
    /// Returns a plot of bars without any; the two names are of ours and of the paper's.
    pub fn bars(file: String, title: String, unit: &'static str, legend: [&'static str; 2]) -> Plot {
        Plot { file, title, kind: Kind::Bars { unit, legend, bars: Vec::new() } }
    }

    /// Returns a plot of lines; a logarithmic one has powers of ten of x at equal distances.
    pub fn lines(
        file: &str,
        title: String,
        x: &'static str,
        y: &'static str,
        is_logarithmic: bool,
        series: Vec<Series>,
    ) -> Plot {
        Plot { file: file.to_owned(), title, kind: Kind::Lines { x, y, is_logarithmic, series } }
    }

    /// Adds a pair of bars: our median, least and greatest value; the paper's value.
    pub fn bar(&mut self, name: &str, ours: Option<[f64; 3]>, paper: Option<f64>) {
        if let Kind::Bars { bars, .. } = &mut self.kind {
            bars.push(Bar { name: name.to_owned(), ours, paper });
        }
    }

    /// Writes the plot into a directory, under its own name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(format!("{}.svg", self.file));
        std::fs::write(&path, self.svg()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the plot as SVG.
    pub fn svg(&self) -> String {
        let mut svg = Svg(String::new());
        let height = match &self.kind {
            Kind::Bars { unit, legend, bars } => draw_bars(&mut svg, unit, legend, bars),
            Kind::Lines { x, y, is_logarithmic, series } => draw_lines(&mut svg, x, y, *is_logarithmic, series),
        };
        format!(
            "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} \
             {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
             fill=\"white\"/>\n<text x=\"{:.0}\" y=\"22\" font-size=\"15\" text-anchor=\"middle\">{}</text>\n{}</svg>\n",
            WIDTH / 2.0,
            escape(&self.title),
            svg.0
        )
    }
}

fn draw_bars(svg: &mut Svg, unit: &str, legend: &[&str; 2], bars: &[Bar]) -> f64 {
    let greatest = bars.iter().flat_map(|bar| [bar.ours.map(|ours| ours[2]), bar.paper]).flatten().fold(0.0, f64::max);
    let axis = Axis::up_to(greatest);
    let place = |value: f64| LABELS + value / axis.end * (WIDTH - LABELS - MARGIN);
    let mut y = 58.0;
    let bottom = y + sum(bars.iter().map(|_| 2.0 * BAR_HEIGHT + 6.0));
    for tick in axis.ticks() {
        svg.line((place(tick), 50.0), (place(tick), bottom), "#e2e8f0");
        svg.text((place(tick), bottom + 14.0), "middle", &format!("{tick}"));
    }
    for bar in bars {
        svg.text((LABELS - 8.0, y + BAR_HEIGHT + 4.0), "end", &bar.name);
        if let Some([median, least, most]) = bar.ours {
            svg.rect((LABELS, y), (place(median) - LABELS, BAR_HEIGHT), COLOURS[0]);
            svg.line((place(least), y + BAR_HEIGHT / 2.0), (place(most), y + BAR_HEIGHT / 2.0), "black");
            svg.text((place(most) + 4.0, y + 11.0), "start", &format!("{median:.0}"));
        }
        if let Some(value) = bar.paper {
            svg.rect((LABELS, y + BAR_HEIGHT), (place(value) - LABELS, BAR_HEIGHT), PAPER_COLOUR);
            svg.text((place(value) + 4.0, y + BAR_HEIGHT + 11.0), "start", &format!("{value:.0}"));
        }
        y += 2.0 * BAR_HEIGHT + 6.0;
    }
    svg.text((WIDTH - MARGIN, bottom + 30.0), "end", unit);
    svg.legend((LABELS, 40.0), &[(legend[0], COLOURS[0]), (legend[1], PAPER_COLOUR)]);
    bottom + 40.0
}

fn draw_lines(svg: &mut Svg, x: &str, y: &str, is_logarithmic: bool, series: &[Series]) -> f64 {
    let points = || series.iter().flat_map(|series| &series.points);
    let vertical = Axis::up_to(points().map(|point| point.1).fold(0.0, f64::max));
    let greatest = points().map(|point| point.0).fold(1.0, f64::max);
    let horizontal = Axis::up_to(greatest);
    let (left, right, top, bottom) = (MARGIN + 10.0, WIDTH - MARGIN, 76.0, LINES_HEIGHT - 50.0);
    let across = |value: f64| match is_logarithmic {
        true => left + value.max(1.0).log10() / greatest.max(10.0).log10() * (right - left),
        false => left + value / horizontal.end * (right - left),
    };
    let up = |value: f64| bottom - value / vertical.end * (bottom - top);
    for tick in vertical.ticks() {
        svg.line((left, up(tick)), (right, up(tick)), "#e2e8f0");
        svg.text((left - 6.0, up(tick) + 4.0), "end", &format!("{tick}"));
    }
    let ticks = if is_logarithmic { points().map(|point| point.0).collect() } else { horizontal.ticks() };
    for tick in ticks {
        svg.line((across(tick), bottom), (across(tick), bottom + 5.0), "black");
        svg.text((across(tick), bottom + 18.0), "middle", &format!("{tick}"));
    }
    svg.line((left, bottom), (right, bottom), "black");
    let mut names = Vec::new();
    for (number, line) in series.iter().enumerate() {
        let colour = if line.is_paper { PAPER_COLOUR } else { COLOURS[number % COLOURS.len()] };
        for pair in line.points.windows(2) {
            svg.line((across(pair[0].0), up(pair[0].1)), (across(pair[1].0), up(pair[1].1)), colour);
        }
        line.points.iter().for_each(|point| svg.dot((across(point.0), up(point.1)), colour));
        names.push((line.name.as_str(), colour));
    }
    svg.legend((left, 40.0), &names);
    svg.text(((left + right) / 2.0, LINES_HEIGHT - 12.0), "middle", x);
    svg.text((left - 40.0, top - 10.0), "start", y);
    LINES_HEIGHT
}

/// The values of an axis from 0 on.
struct Axis {
    end: f64,
    step: f64,
}

impl Axis {
    fn up_to(greatest: f64) -> Axis {
        let greatest = greatest.max(f64::MIN_POSITIVE);
        let power = 10_f64.powf((greatest / 4.0).log10().floor());
        let fits = |step: &f64| greatest / step <= 6.0;
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(fits).unwrap_or(10.0 * power);
        Axis { end: (greatest * 1.08 / step).ceil() * step, step }
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = vec![0.0];
        while let Some(next) = ticks.last().map(|last| last + self.step).filter(|next| *next <= self.end * 1.001) {
            ticks.push(next);
        }
        ticks
    }
}

/// Elements of an SVG. Writing to a String cannot fail.
struct Svg(String);

impl Svg {
    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
    }

    fn dot(&mut self, (x, y): (f64, f64), colour: &str) {
        let _ = writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
    }

    fn legend(&mut self, (mut x, y): (f64, f64), names: &[(&str, &str)]) {
        for (name, colour) in names {
            self.rect((x, y - 9.0), (10.0, 10.0), colour);
            self.text((x + 14.0, y), "start", name);
            x += 34.0 + 6.2 * sum(name.chars().map(|_| 1.0));
        }
    }
}

fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.sum()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_above_the_greatest_value_with_few_ticks() {
        for greatest in [0.003, 0.97, 1.0, 7.2, 86.0, 1040.0, 123_456.0] {
            let axis = Axis::up_to(greatest);
            assert!(axis.end >= greatest && axis.end < greatest * 1.6, "{greatest}: {}", axis.end);
            assert!((4..=9).contains(&axis.ticks().len()), "{greatest}: {:?}", axis.ticks());
        }
    }

    #[test]
    fn a_plot_shows_all_that_it_was_given() {
        let mut bars = Plot::bars("b".into(), "a < b & c".into(), "kpps", ["ours", "paper"]);
        bars.bar("kernel", Some([800.0, 790.0, 810.0]), Some(786.0));
        bars.bar("afxdp", Some([900.0, 890.0, 910.0]), None);
        let svg = bars.svg();
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains(">800<") && svg.contains(">786<"), "{svg}");
        // Bars, the paper's bar, the legend's two, the background.
        assert_eq!(svg.matches("<rect").count(), 2 + 1 + 2 + 1);
        let series = vec![Series { name: "ours".into(), points: vec![(1.0, 5.0), (100.0, 4.0)], is_paper: false }];
        let svg = Plot::lines("l", "t".into(), "containers", "kpps", true, series).svg();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("containers") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
