use leptos::prelude::*;

/// Drawn on 16 px, in the colour of the text.
#[component]
pub fn Icon(name: &'static str, #[prop(default = 16)] size: u32) -> impl IntoView {
    let path = match name {
        "layers" => "M8 2 2 5l6 3 6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
        "bucket" => {
            "M2.5 4c0-1 2.5-1.7 5.5-1.7s5.5.7 5.5 1.7-2.5 1.7-5.5 1.7S2.5 5 2.5 4zv8c0 1 2.5 1.7 5.5 1.7s5.5-.7 5.5-1.7V4M2.5 8c0 1 2.5 1.7 5.5 1.7s5.5-.7 5.5-1.7"
        }
        "grid" => {
            "M2.5 2.5h4.5v4.5H2.500zM9 2.500h4.500v4.500H9zM2.500 9h4.500v4.500H2.500zM9 9h4.500v4.500H9z"
        }
        "search" => "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.700 10.700 14 14",
        "globe" => "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2 8h12M8 2c4 4 4 8 0 12M8 2c-4 4-4 8 0 12",
        "play" => "M4.500 3v10l8-5z",
        "list" => "M5.500 4H14M5.500 8H14M5.500 12H14M2.200 4h.1M2.200 8h.1M2.200 12h.1",
        "key" => "M5.500 13.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM7.700 8.300 13.500 2.500M11 5l2 2",
        "copy" => "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
        "check" => "m3 8.500 3.500 3.500L13 4.500",
        "close" => "m4 4 8 8M12 4l-8 8",
        "menu" => "M2.500 4h11M2.500 8h11M2.500 12h11",
        "sun" => {
            "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7"
        }
        "moon" => "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z",
        "auto" => "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 2v12M8 5h4.800M8 8h6M8 11h4.800",
        "out" => "M6 2.500H3v11h3M7 8h7M11 5l3 3-3 3",
        "upload" => "M8 10.500V2.500M5 5.500l3-3 3 3M2.500 10.500v3h11v-3",
        "file" => "M4 2h5l3.500 3.500V14H4zM9 2v3.500h3.500",
        "spark" => {
            "M8 2v3M8 11v3M2 8h3M11 8h3M4 4l1.500 1.500M10.500 10.500 12 12M4 12l1.500-1.500M10.500 5.500 12 4"
        }
        "link" => "M6.500 9.500 13 3M9 3h4v4M11 9.500V13H3V5h3.500",
        "plus" => "M8 3v10M3 8h10",
        _ => "M8 8h.1",
    };
    view! {
        <svg width=size height=size viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.300"
            stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=path/></svg>
    }
}
