//! Drawings: a face derived from a number, a landscape without people, a card with a face.

use jpeg_encoder::{ColorType, Encoder};

use super::{people, seeded_values::SeededValues};

type Rgb = [u8; 3];

const QUALITY: u8 = 80;
const WIDTH: usize = 160;
const HEIGHT: usize = 200;
const SKINS: [Rgb; 5] = [[92, 58, 40], [112, 70, 47], [133, 85, 57], [156, 103, 71], [77, 48, 34]];
const HAIRS: [Rgb; 4] = [[22, 18, 17], [38, 28, 24], [55, 38, 30], [90, 88, 88]];
const CLOTHES: [Rgb; 6] =
    [[32, 84, 130], [26, 110, 84], [143, 52, 62], [196, 138, 40], [96, 66, 128], [60, 66, 78]];
const WALLS: [Rgb; 5] =
    [[214, 226, 236], [232, 226, 210], [216, 232, 218], [236, 218, 214], [222, 218, 234]];
const INK: Rgb = [34, 28, 26];

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    /// Creates a canvas filled with a vertical gradient.
    fn new(width: usize, height: usize, top: Rgb, bottom: Rgb) -> Canvas {
        let row = |y: usize| mix(top, bottom, y as f32 / height as f32);
        let pixels = (0..height).flat_map(|y| std::iter::repeat_n(row(y), width)).collect();
        Canvas { width, height, pixels }
    }

    /// Draws an ellipse with a soft edge.
    fn ellipse(&mut self, [x, y]: [f32; 2], [rx, ry]: [f32; 2], colour: Rgb) {
        let rows = (y - ry).max(0.0) as usize..self.height.min((y + ry + 1.0) as usize);
        for row in rows {
            for column in (x - rx).max(0.0) as usize..self.width.min((x + rx + 1.0) as usize) {
                let (dx, dy) = ((column as f32 - x) / rx, (row as f32 - y) / ry);
                let inside = (1.0 - dx.hypot(dy)) * rx.min(ry) + 0.5;
                if inside > 0.0 {
                    let pixel = &mut self.pixels[row * self.width + column];
                    *pixel = mix(*pixel, colour, inside.min(1.0));
                }
            }
        }
    }

    fn rectangle(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], colour: Rgb) {
        for row in y..self.height.min(y + height) {
            self.pixels[row * self.width..][x..self.width.min(x + width)].fill(colour);
        }
    }

    /// Pastes another canvas at half its size.
    fn paste_half(&mut self, [x, y]: [usize; 2], other: &Canvas) {
        for row in 0..other.height / 2 {
            for column in 0..other.width / 2 {
                let pixel = other.pixels[2 * row * other.width + 2 * column];
                self.pixels[(y + row) * self.width + x + column] = pixel;
            }
        }
    }

    /// Encodes a JPEG. Empty on failure, which cannot occur when writing to memory.
    fn jpeg(&self) -> Vec<u8> {
        let mut jpeg = Vec::new();
        let (width, height) = (self.width as u16, self.height as u16);
        let encoder = Encoder::new(&mut jpeg, QUALITY);
        let written = encoder.encode(self.pixels.as_flattened(), width, height, ColorType::Rgb);
        if let Err(error) = written {
            tracing::warn!(%error, "picture could not be encoded");
        }
        jpeg
    }
}

fn mix(from: Rgb, to: Rgb, share: f32) -> Rgb {
    std::array::from_fn(|n| {
        let (from, to) = (f32::from(from[n]), f32::from(to[n]));
        (from + (to - from) * share) as u8
    })
}

/// Returns the face of the person with this number.
pub(super) fn face(key: &str) -> Vec<u8> {
    draw_face(key).jpeg()
}

fn draw_face(key: &str) -> Canvas {
    let lot = SeededValues::new(key);
    let [skin, hair] = [lot.pick("skin", &SKINS), lot.pick("hair", &HAIRS)];
    let [cloth, wall] = [lot.pick("cloth", &CLOTHES), lot.pick("wall", &WALLS)];
    let woman = people::is_woman(key);
    let (wide, tall) = (31.0 + lot.below("wide", 6) as f32, 38.0 + lot.below("tall", 6) as f32);
    let shade = mix(skin, INK, 0.25);
    let mut canvas = Canvas::new(WIDTH, HEIGHT, mix(wall, [255; 3], 0.4), wall);
    if woman {
        let length = 50.0 + lot.below("length", 26) as f32;
        canvas.ellipse([80.0, 68.0 + length / 3.0], [wide + 13.0, length], hair);
    }
    canvas.rectangle([66, 112], [28, 44], shade);
    canvas.ellipse([80.0, 206.0], [66.0, 56.0], cloth);
    canvas.ellipse([80.0, 150.0], [17.0, 13.0], shade);
    canvas.ellipse([80.0, 76.0], [wide + 4.0, tall + 1.0], hair);
    for side in [-1.0, 1.0] {
        canvas.ellipse([80.0 + side * wide, 94.0], [6.0, 9.0], shade);
    }
    canvas.ellipse([80.0, 92.0], [wide, tall], skin);
    draw_features(&mut canvas, &lot, skin, hair);
    if !woman && lot.below("beard", 3) == 0 {
        canvas.ellipse([80.0, 126.0], [13.0, 6.0], hair);
    }
    canvas
}

/// Draws eyes, brows, nose and mouth.
fn draw_features(canvas: &mut Canvas, lot: &SeededValues, skin: Rgb, hair: Rgb) {
    let apart = 12.0 + lot.below("apart", 4) as f32;
    for side in [-1.0, 1.0] {
        let x = 80.0 + side * apart;
        canvas.ellipse([x, 88.0], [6.0, 3.6], [246, 243, 238]);
        canvas.ellipse([x, 88.0], [2.9, 2.9], INK);
        canvas.ellipse([x, 79.0], [8.0, 2.0], hair);
    }
    let nose = 4.0 + lot.below("nose", 4) as f32;
    canvas.ellipse([80.0, 101.0], [nose, 3.5], mix(skin, INK, 0.18));
    let mouth = 9.0 + lot.below("mouth", 6) as f32;
    canvas.ellipse([80.0, 114.0], [mouth, 3.6], [142, 62, 58]);
    canvas.ellipse([80.0, 112.6], [mouth, 1.6], mix(skin, INK, 0.1));
}

/// Returns a landscape, a picture without a face.
pub(super) fn landscape(key: &str) -> Vec<u8> {
    let lot = SeededValues::new(key);
    let mut canvas = Canvas::new(WIDTH, HEIGHT, [122, 178, 224], [230, 240, 244]);
    let across = |name, most| 30.0 + lot.below(name, most) as f32;
    canvas.ellipse([across("sun", 100), 42.0], [15.0, 15.0], [252, 214, 96]);
    canvas.ellipse([across("far", 60), 182.0], [110.0, 66.0], [118, 158, 118]);
    canvas.ellipse([across("near", 100), 214.0], [130.0, 70.0], [78, 130, 78]);
    canvas.jpeg()
}

/// Returns a card with the face and lines of text.
pub(super) fn card(key: &str) -> Vec<u8> {
    let lot = SeededValues::new(key);
    let colour = lot.pick("cloth", &CLOTHES);
    let mut canvas = Canvas::new(320, 200, [246, 247, 243], [226, 232, 226]);
    canvas.rectangle([0, 0], [320, 34], colour);
    canvas.rectangle([92, 13], [136, 8], [244; 3]);
    canvas.paste_half([18, 54], &draw_face(key));
    for line in 0..5 {
        let y = 56 + 20 * line;
        canvas.rectangle([120, y], [46, 4], [150, 156, 152]);
        let length = 60 + usize::try_from(lot.below(&format!("line {line}"), 110)).unwrap_or(0);
        canvas.rectangle([120, y + 7], [length, 6], INK);
    }
    canvas.rectangle([18, 172], [284, 8], mix(colour, [255; 3], 0.5));
    canvas.jpeg()
}
