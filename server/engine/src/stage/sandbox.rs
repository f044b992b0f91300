//! A sandbox for code of strangers: QuickJS inside an interpreter of WebAssembly. The code reaches nothing outside but its
//! own output, and ends when its fuel, its memory or its time does.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wasmi::{
    Caller, CompilationMode, Config, Engine, Error, Extern, Instance, Linker, Memory, Module,
    Store, StoreLimits, StoreLimitsBuilder, TypedFunc, TypedResumableCall, Val, WasmParams,
    WasmResults,
};

static QUICKJS: &[u8] = include_bytes!("../../data/quickjs/quickjs.wasm.zst");

const WASI: &str = "wasi_snapshot_preview1";
/// Instructions between two looks at the clock, and for each millisecond of a run at most.
const SLICE: u64 = 5_000_000;
const FUEL_PER_MS: u64 = 2_000_000;
/// Calls of WebAssembly inside of each other, and bytes of their values: a call of JavaScript is several of them, and a parser of
/// nested expressions many.
const DEEPEST: usize = 10_000;
const HIGHEST: usize = 4 << 20;
/// Words of WASI: no such file, and a stream that has no places.
const BAD_FILE: i32 = 8;
const NO_SEEK: i32 = 70;
const FAULT: i32 = 21;
/// Functions of WASI that do something here.
const OURS: [&str; 8] = [
    "fd_write",
    "fd_read",
    "fd_fdstat_get",
    "fd_seek",
    "environ_sizes_get",
    "environ_get",
    "clock_time_get",
    "proc_exit",
];
/// Parts of one write.
const MOST_PARTS: i32 = 1_024;

/// Whether code of callers is run, and in how much memory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeConfig {
    pub enabled: bool,
    /// Memory of one run in MiB.
    pub memory_mb: usize,
}

impl Default for CodeConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            memory_mb: 64,
        }
    }
}

/// The bounds of one run.
pub(crate) struct Bounds<'a> {
    pub memory_mb: usize,
    pub time: Duration,
    /// Bytes of output.
    pub output: usize,
    /// Milliseconds since 1970: what code takes for the time.
    pub now: i64,
    /// Ends the run.
    pub stop: &'a AtomicBool,
}

/// What a run left.
pub(crate) struct Ran {
    pub output: String,
    /// The interpreter's own word for how it ended; 0 is well.
    pub code: i32,
}

/// What the interpreter can reach.
struct Host {
    limits: StoreLimits,
    output: Vec<u8>,
    most: usize,
    now: i64,
    started: Instant,
}

struct Interpreter {
    engine: Engine,
    module: Module,
}

static INTERPRETER: OnceLock<Result<Interpreter, String>> = OnceLock::new();

fn interpreter() -> Result<&'static Interpreter, String> {
    let made = INTERPRETER.get_or_init(|| {
        let wasm = zstd::decode_all(QUICKJS).map_err(|e| e.to_string())?;
        let mut config = Config::default();
        config
            .consume_fuel(true)
            .set_max_recursion_depth(DEEPEST)
            .set_max_stack_height(HIGHEST)
            .compilation_mode(CompilationMode::LazyTranslation);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, &wasm).map_err(|e| e.to_string())?;
        Ok(Interpreter { engine, module })
    });
    made.as_ref().map_err(Clone::clone)
}

/// Runs a script; keeps the thread busy until it ends.
///
/// # Errors
/// Why the run was ended, in words for who wrote the script.
pub(crate) fn javascript(script: &str, bounds: &Bounds<'_>) -> Result<Ran, String> {
    if script.contains('\0') {
        return Err("code holds no zero characters".into());
    }
    let interpreter = interpreter()?;
    let limits = StoreLimitsBuilder::new()
        .memory_size(bounds.memory_mb << 20)
        .memories(1)
        .instances(1)
        .build();
    let host = Host {
        limits,
        output: Vec::new(),
        most: bounds.output,
        now: bounds.now,
        started: Instant::now(),
    };
    let mut store = Store::new(&interpreter.engine, host);
    store.limiter(|host| &mut host.limits);
    store.set_fuel(SLICE).map_err(|e| e.to_string())?;
    let linker = linker(interpreter).map_err(|e| e.to_string())?;
    let instance = linker
        .instantiate_and_start(&mut store, &interpreter.module)
        .map_err(|e| e.to_string())?;
    let mut machine = Machine {
        store,
        instance,
        left: FUEL_PER_MS.saturating_mul(bounds.time.as_millis() as u64),
        bounds,
    };
    let code = machine.evaluate(script)?;
    let host = machine.store.into_data();
    Ok(Ran {
        output: String::from_utf8_lossy(&host.output).into_owned(),
        code,
    })
}

/// One instance of the interpreter, and what it may still use.
struct Machine<'a> {
    store: Store<Host>,
    instance: Instance,
    left: u64,
    bounds: &'a Bounds<'a>,
}

impl Machine<'_> {
    /// Does as `qjs -e SCRIPT` would.
    fn evaluate(&mut self, script: &str) -> Result<i32, String> {
        self.call::<(), ()>("_initialize", ())?;
        let mut words = Vec::new();
        for word in ["qjs", "-e", script] {
            let mut bytes = word.as_bytes().to_vec();
            bytes.push(0);
            let place: i32 = self.put(&bytes)?;
            words.extend_from_slice(&place.to_le_bytes());
        }
        let list = self.put(&words)?;
        self.call("qjs_init_argv", (3_i32, list))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<i32, String> {
        let size = i32::try_from(bytes.len()).map_err(|_| "the code is too long".to_owned())?;
        let place: i32 = self.call("malloc", size)?;
        let memory = self.instance.get_memory(&self.store, "memory");
        let memory = memory.ok_or("the interpreter has no memory")?;
        if place == 0 {
            return Err(format!(
                "the code needs more than {} MiB of memory",
                self.bounds.memory_mb
            ));
        }
        memory
            .write(&mut self.store, place as u32 as usize, bytes)
            .map_err(|e| e.to_string())?;
        Ok(place)
    }

    /// Calls a function of the interpreter in slices, looking at the bounds between them.
    fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, with: P) -> Result<R, String> {
        let function: TypedFunc<P, R> = self
            .instance
            .get_typed_func(&self.store, name)
            .map_err(|e| e.to_string())?;
        self.fuel(0)?;
        let mut state = function.call_resumable(&mut self.store, with);
        loop {
            match state.map_err(|error| told(&error))? {
                TypedResumableCall::Finished(result) => return Ok(result),
                TypedResumableCall::HostTrap(trap) => return Err(told(trap.host_error())),
                TypedResumableCall::OutOfFuel(paused) => {
                    self.fuel(paused.required_fuel())?;
                    state = paused.resume(&mut self.store);
                }
            }
        }
    }

    /// Fuel for the next slice, where the bounds allow one.
    fn fuel(&mut self, needed: u64) -> Result<(), String> {
        if self.bounds.stop.load(Ordering::Relaxed) {
            return Err("the execution ended".into());
        }
        let spent = self.store.data().started.elapsed();
        let slice = SLICE.max(needed);
        if spent >= self.bounds.time || self.left < slice {
            return Err(format!(
                "it took longer than {} ms",
                self.bounds.time.as_millis()
            ));
        }
        self.left -= slice;
        self.store.set_fuel(slice).map_err(|e| e.to_string())
    }
}

fn told(error: &Error) -> String {
    match error.as_trap_code() {
        Some(code) => format!("it was ended: {code}"),
        None => error.to_string(),
    }
}

/// What the interpreter finds around it: somewhere to write, a clock, and nothing else.
fn linker(interpreter: &Interpreter) -> Result<Linker<Host>, Error> {
    let mut linker = Linker::new(&interpreter.engine);
    linker.func_wrap(WASI, "fd_write", write)?;
    linker.func_wrap(WASI, "fd_read", nothing_to_read)?;
    linker.func_wrap(WASI, "fd_fdstat_get", kind_of)?;
    linker.func_wrap(WASI, "fd_seek", |_: i32, _: i64, _: i32, _: i32| NO_SEEK)?;
    linker.func_wrap(WASI, "environ_sizes_get", empty_environment)?;
    linker.func_wrap(WASI, "environ_get", |_: i32, _: i32| 0_i32)?;
    linker.func_wrap(WASI, "clock_time_get", clock)?;
    linker.func_wrap(WASI, "proc_exit", |code: i32| -> Result<(), Error> {
        Err(Error::new(format!("it left with {code}")))
    })?;
    for import in interpreter.module.imports() {
        let Some(kind) = import.ty().func() else {
            continue;
        };
        // Files and folders: there are none.
        let none = |_: Caller<'_, Host>, _: &[Val], results: &mut [Val]| {
            results.iter_mut().for_each(|one| *one = Val::I32(BAD_FILE));
            Ok(())
        };
        if !OURS.contains(&import.name()) {
            linker.func_new(import.module(), import.name(), kind.clone(), none)?;
        }
    }
    Ok(linker)
}

fn memory(caller: &Caller<'_, Host>) -> Result<Memory, Error> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => Err(Error::new("the interpreter has no memory")),
    }
}

fn number(memory: &Memory, caller: &Caller<'_, Host>, at: u32) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(caller, at as usize, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

/// Writes to the output; whatever stream it is.
fn write(
    mut caller: Caller<'_, Host>,
    _stream: i32,
    parts: i32,
    count: i32,
    told: i32,
) -> Result<i32, Error> {
    let memory = memory(&caller)?;
    let mut written = 0_u32;
    for part in 0..count.clamp(0, MOST_PARTS) as u32 {
        let place = (parts as u32).wrapping_add(part.wrapping_mul(8));
        let found = number(&memory, &caller, place);
        let found = found.zip(number(&memory, &caller, place.wrapping_add(4)));
        let Some((from, size)) = found else {
            return Ok(FAULT);
        };
        let (data, host) = memory.data_and_store_mut(&mut caller);
        let until = (from as usize).saturating_add(size as usize);
        let Some(bytes) = data.get(from as usize..until) else {
            return Ok(FAULT);
        };
        if host.output.len() + bytes.len() > host.most {
            return Err(Error::new(format!(
                "it gives more than {} bytes",
                host.most
            )));
        }
        host.output.extend_from_slice(bytes);
        written = written.wrapping_add(size);
    }
    let done = memory.write(&mut caller, told as u32 as usize, &written.to_le_bytes());
    Ok(if done.is_ok() { 0 } else { FAULT })
}

fn nothing_to_read(mut caller: Caller<'_, Host>, _: i32, _: i32, _: i32, told: i32) -> i32 {
    put(&mut caller, told, &0_u32.to_le_bytes())
}

/// The three streams are lines of text; there is nothing else.
fn kind_of(mut caller: Caller<'_, Host>, stream: i32, told: i32) -> i32 {
    if !(0..3).contains(&stream) {
        return BAD_FILE;
    }
    let mut stat = [0_u8; 24];
    stat[0] = 2;
    put(&mut caller, told, &stat)
}

fn empty_environment(mut caller: Caller<'_, Host>, count: i32, size: i32) -> i32 {
    let zero = 0_u32.to_le_bytes();
    put(&mut caller, count, &zero).max(put(&mut caller, size, &zero))
}

fn clock(mut caller: Caller<'_, Host>, which: i32, _: i64, told: i32) -> i32 {
    let host = caller.data();
    let spent = host.started.elapsed().as_nanos() as u64;
    let from = if which == 0 {
        (host.now.max(0) as u64).saturating_mul(1_000_000)
    } else {
        0
    };
    put(&mut caller, told, &from.saturating_add(spent).to_le_bytes())
}

fn put(caller: &mut Caller<'_, Host>, at: i32, bytes: &[u8]) -> i32 {
    let Ok(memory) = memory(caller) else {
        return FAULT;
    };
    match memory.write(caller, at as u32 as usize, bytes) {
        Ok(()) => 0,
        Err(_) => FAULT,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Ran, String> {
        let stop = AtomicBool::new(false);
        let bounds = Bounds {
            memory_mb: 16,
            time: Duration::from_secs(3),
            output: 10_000,
            now: 1_795_000_000_000,
            stop: &stop,
        };
        javascript(script, &bounds)
    }

    #[test]
    fn code_computes_and_reaches_nothing() {
        let ran =
            run("console.log(JSON.stringify([1, 2, 3].map(x => x * 2)), new Date().getFullYear())")
                .unwrap();
        assert_eq!((ran.output.trim(), ran.code), ("[2,4,6] 2026", 0));
        let ran = run("console.log(typeof std, typeof os, typeof require, typeof fetch)").unwrap();
        assert_eq!(ran.output.trim(), "undefined undefined undefined undefined");
        let ran = run("throw new Error('no')").unwrap();
        assert!(ran.code != 0 && ran.output.contains("no"), "{}", ran.output);
        let ran =
            run("import('/etc/passwd').then(x => console.log('read'), e => console.log('none'))");
        assert!(!ran.is_ok_and(|ran| ran.output.contains("read")));
    }

    #[test]
    fn code_ends_with_its_time_its_memory_and_its_output() {
        let started = Instant::now();
        let late = run("for (;;) {}").err().unwrap();
        assert!(late.contains("3000 ms"), "{late}");
        assert!(started.elapsed() < Duration::from_secs(10));
        let greedy = run("let a = []; for (;;) a.push(new Uint8Array(1 << 20))");
        assert!(
            greedy.as_ref().is_ok_and(|ran| ran.code != 0) || greedy.is_err(),
            "it cannot have the memory"
        );
        let loud = run("for (;;) console.log('x'.repeat(100))").err().unwrap();
        assert!(loud.contains("more than 10000 bytes"), "{loud}");
        let deep = run("const f = () => f() + 1; f()");
        assert!(deep.is_err() || deep.is_ok_and(|ran| ran.code != 0));
        let stop = AtomicBool::new(true);
        let bounds = Bounds {
            memory_mb: 16,
            time: Duration::from_secs(3),
            output: 100,
            now: 0,
            stop: &stop,
        };
        assert!(javascript("1", &bounds).is_err());
    }
}
