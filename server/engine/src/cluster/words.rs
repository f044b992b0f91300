//! What a cluster is about: the words that tell it apart from all clusters together.
//!
//! A word's weight is what it adds to the Kullback-Leibler divergence of the distribution of words in the cluster from that in all
//! of them, p log(p / q), as Carpineto, de Mori, Romano and Bigi weigh terms (An information-theoretic approach to automatic query
//! expansion, ACM Transactions on Information Systems 19(1), 2001). A word that every cluster uses as much adds nothing, however
//! frequent it is.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use qdrant_rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation as _;

/// Characters of each text that are read.
const READ: usize = 2_000;
/// Texts of each cluster that are read, the nearest to its middle first.
const TEXTS: usize = 200;

/// The words of a cluster by their stems: a ship and ships are one.
type Words = BTreeMap<String, Used>;

/// How many texts use a word, and in which forms.
#[derive(Debug, Default)]
struct Used {
    texts: usize,
    forms: BTreeMap<String, usize>,
}

impl Used {
    /// The form that most texts use; of several the shortest.
    fn form(&self) -> &str {
        let rank = |(form, texts): &(&String, &usize)| (**texts, usize::MAX - form.len());
        // The first of equals is the last that is greater.
        let best = self.forms.iter().rev().max_by_key(rank);
        best.map_or("", |(form, _)| form)
    }
}

/// The most telling words of each cluster, best first. `texts` are those of its members, nearest first. A cluster that no word
/// tells apart, as one alone is, has the words that it uses most.
pub fn keywords(texts: &[Vec<&str>], most: usize) -> Vec<Vec<String>> {
    let clusters: Vec<Words> = texts.iter().map(|texts| count(texts)).collect();
    let mut whole: HashMap<&str, usize> = HashMap::new();
    for (stem, used) in clusters.iter().flatten() {
        *whole.entry(stem).or_default() += used.texts;
    }
    let all = whole.values().sum::<usize>() as f64;
    let telling = |words: &Words| {
        let own = words.values().map(|used| used.texts).sum::<usize>() as f64;
        let weigh = |(stem, used): (&String, &Used)| {
            let share = used.texts as f64 / own;
            let everywhere = whole[stem.as_str()] as f64 / all;
            (share * (share / everywhere).ln(), share)
        };
        let mut ranked: Vec<((f64, f64), &str)> = words
            .iter()
            .map(|word| (weigh(word), word.1.form()))
            .collect();
        // Rounding leaves a little of nothing.
        if ranked.iter().any(|((weight, _), _)| *weight > 1e-9) {
            ranked.retain(|((weight, _), _)| *weight > 1e-9);
        } else {
            ranked
                .iter_mut()
                .for_each(|((weight, share), _)| *weight = *share);
        }
        ranked.sort_by(|a, b| b.0.0.total_cmp(&a.0.0).then(a.1.cmp(b.1)));
        let first = ranked.into_iter().take(most);
        first.map(|(_, form)| form.to_owned()).collect()
    };
    clusters.iter().map(telling).collect()
}

/// How many of the texts use each word.
fn count(texts: &[&str]) -> Words {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut counts = Words::new();
    for text in texts.iter().take(TEXTS) {
        let text: String = text.chars().take(READ).collect();
        let words = text.unicode_words().map(str::to_lowercase);
        let words = words.filter(|word| tells(word)).chain(pairs(&text));
        let words: HashSet<String> = words.collect();
        let mut seen = HashSet::new();
        for word in words {
            let stem = stemmer.stem(&word).into_owned();
            let used = counts.entry(stem.clone()).or_default();
            used.texts += usize::from(seen.insert(stem));
            *used.forms.entry(word).or_default() += 1;
        }
    }
    counts
}

/// Chinese characters two by two: what stands without spaces between has its words in pairs, mostly.
fn pairs(text: &str) -> impl Iterator<Item = String> {
    let is_han = |c: char| matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}');
    let both = text.chars().zip(text.chars().skip(1));
    both.filter(move |(first, second)| is_han(*first) && is_han(*second))
        .map(|(first, second)| [first, second].iter().collect())
}

/// Numbers and the little words tell nothing. Alphabets whose letters are syllables have words of two.
fn tells(word: &str) -> bool {
    let is_syllable = |c: char| matches!(c, '\u{3040}'..='\u{30FF}' | '\u{AC00}'..='\u{D7AF}');
    let least = match word.chars().all(is_syllable) {
        true => 2,
        false => 3,
    };
    word.chars().count() >= least
        && word.chars().any(char::is_alphabetic)
        && !word.chars().any(|c| c.is_ascii_digit())
        && !LITTLE.contains(word)
}

/// Words that say nothing of what a text is about, in the languages that are written most here. What is such a word in one and
/// a thing in another is left out (German `war`, French `car`, Dutch `door`): where all clusters use it, it weighs nothing anyway.
static LITTLE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let languages = [
        ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH, RUSSIAN,
    ];
    languages
        .iter()
        .flat_map(|words| words.split_whitespace())
        .collect()
});

const ENGLISH: &str = "\
    about above after again against all also always among and another any anything are aren't around because been before being \
    below between both but came can can't cannot come could couldn't did didn't does doesn't doing don't done down during each \
    either else ever every everything few for from further get gets getting goes going gone got had hadn't has hasn't have haven't \
    having her here hers herself him himself his how however i'd i'll i'm i've into isn't it's its itself just know let let's like \
    made make makes many may maybe might more most much must mustn't myself need neither never new nor not nothing now off often \
    old once one only onto other others our ours ourselves out over own per perhaps put quite rather really said same say says see \
    seen shall she should shouldn't since some someone something still such take taken than that that's the their theirs them \
    themselves then there there's therefore these they they're they've thing things this those though through thus together too \
    took toward two under until unto upon use used uses using very via want wants was wasn't way well went were weren't what \
    what's when where whether which while who whom whose why will with within without won't would wouldn't yes yet you you'll \
    you're you've your yours yourself yourselves";

const GERMAN: &str = "\
    aber alle allem allen aller alles als also andere anderen auch auf aus bei beim bis bist damit dann das dass daß dein deine \
    dem den denn der des dessen die dies diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines etwas \
    euch euer für gegen gewesen hab habe haben hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer immer \
    ist jede jedem jeden jeder jedes jetzt kann kein keine keinen können könnte machen mehr mein meine mich mir mit muss musste \
    nach nicht nichts noch nun nur oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind sollte sondern soll \
    über und uns unser unsere unter viel vom von vor waren warst was weil welche welcher wenn werde werden wie wieder will \
    wir wird wirst wollen wurde wurden würde zum zur zwar zwischen";

const FRENCH: &str = "\
    alors après assez au-dessus aussi autre autres aux avait avant avec avoir bien ceci cela celle celles celui ces cet cette \
    ceux chaque chez comme dans depuis des deux doit donc dont elle elles encore entre est et étaient était être eux fait \
    faire fois ici ils leur leurs lors lui mais même mes moins mon nos notre nous par parce pas peu peut pourquoi \
    quand que quel quelle quelles quels qui quoi sans sera ses seulement soit sont sous sur tandis tes ton tous tout toute toutes \
    très une vers voici voilà vos votre vous été";

const SPANISH: &str = "\
    algo algunas algunos ante antes aquel aquella así aunque cada como con contra cual cuando del desde donde dos durante ella ellas \
    ellos entonces entre eran eres esa esas ese eso esos esta está estaba están estar estas este esto estos fue fueron había \
    hace hacer han hasta hay las les los más mas mientras mis mucho muchos muy nada ni nos nosotros nuestra nuestro otra otras otro \
    otros para pero poco por porque pues que qué quien ser será sí sido sobre sus también tan tanto tener tiene tienen todo \
    todos tras una unas uno unos usted vosotros ya yo";

const ITALIAN: &str = "\
    agli alla alle allo anche ancora avere aveva che chi come con contro cosa così cui dagli dai dal dalla dalle degli dei del della \
    delle dello dentro dopo due ecco erano essere fino fra gli hanno loro lui mai mentre mia mio molto nei nel \
    nella nelle noi non nostra nostro ogni oppure per perché però più poi prima qua quale quando quanto quella quelle quelli quello \
    questa queste questi questo qui sarà senza sia siamo siano solo sono sopra sotto sua sue sugli sul sulla suo suoi tra tutta tutte \
    tutti tutto una uno voi";

const PORTUGUESE: &str = "\
    ainda algo antes ao aos apenas após aquela aquele aqui assim até cada com como contra cuja cujo das dela dele deles depois desde \
    deve disso dos duas ela elas ele eles entre eram essa esse está estão estar este eu foi foram fosse há isso isto já lhe mais \
    mas mesmo meu minha muito muitos nas nem nenhum nos nossa nosso não onde outra outras outro outros para pela pelas pelo pelos \
    pode por porque pouco quais qual quando que quem são seja sem sempre ser será seu seus sobre sua suas também tanto tem têm ter \
    tinha toda todas todo todos tudo uma umas uns você vocês";

const DUTCH: &str = "\
    aan alle alleen als altijd andere ben bij daar dan dat deze die dit doch doen dus een eens en enige er geen geweest haar had \
    hadden heb hebben heeft het hier hij hoe hun iemand iets ik in is ja je kan kon kunnen maar me meer met mij mijn moet \
    na naar niet niets nog nu of om omdat onder ons onze ook op over reeds te tegen toch toen tot uit uw van veel voor waar waren was \
    wat we wel werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou";

const RUSSIAN: &str = "\
    без более был была были было быть вам вас весь вот все всего всех где даже для его ему если есть еще ещё или ими как когда кто \
    между меня мне может можно над надо нам нас наш него нее неё нет них ним ничего она они оно один перед под после потом потому \
    при про раз сам себе себя свой сейчас так также такой там тебя тем теперь тогда того тоже только том тот три тут уже хотя чего \
    чем через что чтобы чуть эта эти это этого этой этом этот";
