/**
 * The language of a text: by its script where one language has it, else by frequent short words and by letters that only
 * one language of the script has. README.md has the share of texts on which langdetect agrees.
 */

/** Scripts that one language of the instructions has. */
const ONE_LANGUAGE: readonly (readonly [code: string, script: RegExp])[] = [
  ["ja", /[\p{sc=Hiragana}\p{sc=Katakana}]/gu],
  ["ko", /\p{sc=Hangul}/gu],
  ["zh", /\p{sc=Han}/gu],
  ["th", /\p{sc=Thai}/gu],
  ["he", /\p{sc=Hebrew}/gu],
  ["el", /\p{sc=Greek}/gu],
  ["bn", /\p{sc=Bengali}/gu],
  ["ta", /\p{sc=Tamil}/gu],
  ["te", /\p{sc=Telugu}/gu],
  ["kn", /\p{sc=Kannada}/gu],
  ["gu", /\p{sc=Gujarati}/gu],
  ["pa", /\p{sc=Gurmukhi}/gu],
  ["ml", /\p{sc=Malayalam}/gu],
];

interface Signs {
  /** Frequent words, separated by spaces. */
  readonly words: string;
  /** Letters that the other languages of the script do not have, or hardly. */
  readonly letters?: string;
  /** Frequent ends of longer words, separated by spaces. */
  readonly endings?: string;
}

const LATIN: Readonly<Record<string, Signs>> = {
  en: {
    endings: "ing tion ed ly ness ment ation ity ers ies ous ful",
    words:
      "the of and to is that it was for you with on are this be as have not but they his her she from at by an or we your can all will there their what which when who would if has more one so about out up do no any into only other than then these some could its our how may should",
  },
  es: {
    endings: "ción ciones mente ando iendo ado ados ada idad ar os",
    words:
      "el la los las de del y que en un una es por con para no se su al lo como más pero sus le ya o fue este ha sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante todos uno les ni contra otros ese eso",
    letters: "ñ¿¡",
  },
  pt: {
    endings: "ção ções mente ando endo ado ados ada dade agem ões",
    words:
      "o a os as de do da dos das e que em um uma é por com para não se na no nas nos mais mas ao ele ela seu sua ou ser quando muito há já está eu também só pelo pela até isso entre era depois sem mesmo aos você são",
    letters: "ãõ",
  },
  fr: {
    endings: "tion ment eux ent ez ique eur age és ée ées aux",
    words:
      "le la les de des du et à un une en est que qui dans pour pas ne sur se au aux ce cette ces il elle ils elles nous vous je son sa ses par plus avec sont mais ou où comme être fait leur sans tout bien été peut même aussi",
    letters: "œçêèù",
  },
  de: {
    endings: "ung ungen keit heit lich lichen isch ischen en er ern",
    words:
      "der die das und ist in zu den mit nicht von ein eine auf für sich des dem auch es an als im er sie wir ich werden wird aus hat bei nach einer einem einen um am sind noch wie über so zum zur war haben nur oder aber vor bis mehr durch kann",
    letters: "ß",
  },
  it: {
    endings: "zione zioni mente ando endo are ere ire ato ata ità",
    words:
      "il lo la i gli le di del della dei delle e che è un una per non in con si da sono come più ma al alla nel nella anche se ha questo questa suo sua o ci loro essere ed dal dalla su tra quando molto cui perché tutti",
    letters: "ìò",
  },
  pl: {
    endings: "ość ego emu ych ami ach anie enie owa owy owe",
    words:
      "i w na z do się nie to jest że o jak po co tak za od przez dla są być ale czy tym był już może tylko jego jej lub oraz przy ze który która które tego bardzo kiedy można pod ich także",
    letters: "łąęśćżźń",
  },
  vi: {
    words: "và của là có cho không được các một những trong với người này đã khi để từ tôi bạn về như thể nhiều",
    letters: "ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
  },
  fi: {
    endings: "ssa ssä sta stä lla llä lle ksi inen isen een iin aan uun tta ttä vat vät mme",
    words:
      "ja on ei se että oli hän joka mutta ovat kun niin kuin tai myös sen ole olla tämä minä sinä me he mitä jos nyt voi vain kaikki sekä hyvin sitä tämän jotka ollut mukaan",
  },
  sw: {
    words:
      "na ya wa kwa ni za katika la cha kuwa hii yake kama si hiyo hizo huyo watu moja pia lakini yao wake au ili sana kila baada hata wao vya mwa yangu yetu wetu lako yako hapa",
  },
  nl: {
    endings: "en ing heid lijk lijke eren sch",
    words:
      "de het een en van is in dat op te zijn met voor niet aan er om ook als bij maar naar uit worden wordt dit die door over nog deze heeft kan meer hun wel geen zich",
  },
  sv: {
    endings: "ningen arna erna ande ade het lig iga",
    words:
      "och att det i som en på är av för med den till inte om ett har de från men var kan så vid eller när ska jag vi du han hon sig också",
    letters: "",
  },
  da: {
    endings: "ningen erne ende ede hed lig ige",
    words:
      "og at det er en den til i på for med af som ikke der har de et kan var om vi jeg du han hun men eller fra blev skal også",
    letters: "",
  },
  no: {
    words:
      "og at det er en den til i på for med av som ikke har de et kan var om vi jeg du han hun men eller fra ble skal også fram etter",
    letters: "",
  },
  ro: {
    endings: "ului ilor area rea ul ele ții ate ează",
    words:
      "și de la în cu nu pe o un este că pentru din se care mai sau sunt au fost prin ca al ale sa lui ei dar acest această",
    letters: "șțăşţ",
  },
  hu: {
    endings: "ban ben nak nek hoz hez ból ből val vel ság ség ott ett",
    words: "a az és hogy nem is egy van ez meg de csak mint el már vagy volt kell ha azt még minden lehet után",
    letters: "őű",
  },
  cs: {
    endings: "ní ost ích ých ého ové ová ání ení",
    words: "a je se v na že s z do to i o ve jako za pro by ale si po jsou od které který není jeho nebo být při",
    letters: "ěřů",
  },
  tr: {
    endings: "ler lar lerin ların dir dır mek mak yor",
    words: "ve bir bu da de için ile olarak çok daha olan en gibi sonra kadar ne var o ya ise değil ama her",
    letters: "ğıİ",
  },
  id: {
    words:
      "yang dan di dengan untuk dari ini itu pada tidak adalah dalam akan ke juga atau saya oleh ada karena dapat mereka lebih sebagai telah bisa kami anda",
  },
  tl: { words: "ang ng sa na mga at ay ito siya hindi para ni ko kung may isang nang" },
};

const CYRILLIC: Readonly<Record<string, Signs>> = {
  ru: {
    endings: "ого его ать ить ется ются ение ения ных ят ут ют",
    words: "и в не на что с по как это он но из у за от к для так же все она или если бы о мы вы их было только",
    letters: "ыэё",
  },
  uk: {
    endings: "ого ати ити ється ення ння них",
    words: "і в не на що з по як це він але із у за від до для так та все вона або якщо би про ми ви їх було тільки",
    letters: "іїєґ",
  },
  bg: {
    endings: "ане ето ата ята ият ите ност",
    words: "и в не на че с по как това той но от за до да се е са ще като при или ако бъде този тази ги им към",
    letters: "ъ",
  },
  mk: { words: "и во не на дека со по како тоа тој но од за до да се е ќе при или ако", letters: "ѓќѕџј" },
};

const ARABIC: Readonly<Record<string, Signs>> = {
  ar: { words: "في من على أن إلى التي الذي هذا هذه ما لا عن مع كان أو قد كل ذلك هو هي", letters: "ةيكىأإؤئ" },
  fa: {
    words: "و در به از که این است را با برای آن یک می ها هر یا شما تا بر های کنید باید شود نمی شده",
    letters: "ژگۀ",
  },
  ur: { words: "کے میں کی ہے اور سے کا کو یہ پر نے ہیں کہ جو بھی کریں ہو اس ایک نہیں وہ تھا لیے", letters: "ٹڈڑںےہھ" },
};

const DEVANAGARI: Readonly<Record<string, Signs>> = {
  hi: {
    endings: "ों ता ना ती ने",
    words: "है के में की और का से को पर यह हैं नहीं कि एक इस लिए ने भी जो तो हो गया करने था या साथ अपने आप",
  },
  mr: {
    endings: "च्या ाचा ण्या मध्ये ाने ात ास",
    words: "आहे आणि या च्या हे ते आहेत नाही एक हा ही की व तो होते मध्ये किंवा साठी असे त्या करण्यासाठी तुम्ही आपण",
    letters: "ळ",
  },
  ne: {
    endings: "हरू को मा ले लाई एको",
    words: "छ र को मा हो छन् लागि यो पनि गर्न छैन भएको गरेको तपाईं त्यो हरू एक वा भने तर गर्नुहोस् हुन्छ",
    letters: "",
  },
};

const SEVERAL_LANGUAGES: readonly (readonly [script: RegExp, signs: Readonly<Record<string, Signs>>, usual: string])[] =
  [
    [/\p{sc=Latin}/gu, LATIN, "en"],
    [/\p{sc=Cyrillic}/gu, CYRILLIC, "ru"],
    [/\p{sc=Arabic}/gu, ARABIC, "ar"],
    [/\p{sc=Devanagari}/gu, DEVANAGARI, "hi"],
  ];

/** A letter of one language, and an ending, weigh as much as this part of a word. */
const LETTER_WEIGHT = 0.25;
const ENDING_WEIGHT = 0.3;
/** The beginning of a text says its language. */
const MAX_CHARACTERS = 20_000;
/** Steps of work per character, measured: 5 at most. */
const STEPS = 10;

/** The work of `languageOf` for a text of this length. */
export function languageSteps(length: number): number {
  return Math.min(length, MAX_CHARACTERS) * STEPS;
}

/** The ISO 639-1 code; null if the text has no letters. */
export function languageOf(text: string): string | null {
  const beginning = withoutAddresses(text.slice(0, MAX_CHARACTERS)).toLowerCase();
  const counted = [
    ...ONE_LANGUAGE.map(([code, script]) => ({ count: countOf(beginning, script), language: () => code })),
    ...SEVERAL_LANGUAGES.map(([script, signs, usual]) => {
      return { count: countOf(beginning, script), language: () => bySigns(beginning, signs, usual) };
    }),
  ];
  const best = counted.reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one));
  return best.count === 0 ? null : best.language();

  /** Foreign names and code in Latin letters do not make a text English; kana make a text with many Han Japanese. */
  function weightOf(of: (typeof counted)[number]): number {
    if (of === counted[ONE_LANGUAGE.length]) return of.count / 2;
    return of === counted[0] ? of.count * 3 : of.count;
  }
}

function withoutAddresses(text: string): string {
  const words = text.split(/\s+/).filter((word) => !/.@./u.test(word));
  return words.map((word) => word.replace(/https?:\/\/.+/, "")).join(" ");
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function bySigns(text: string, signs: Readonly<Record<string, Signs>>, usual: string): string {
  const words = text.match(/[\p{L}\p{M}]+/gu) ?? [];
  const shares = sharesOf(signs);
  let [best, most] = [usual, 0];
  for (const [code, own] of Object.entries(signs)) {
    const score = wordScore(words, own, shares) + letterScore(text, own);
    if (score > most) [best, most] = [code, score];
  }
  return best;
}

function wordScore(words: readonly string[], { words: known, endings }: Signs, shares: ReadonlyMap<string, number>) {
  const list = new Set(known.split(" "));
  const ending = endings === undefined ? null : new RegExp(`..(?:${endings.replaceAll(" ", "|")})$`, "u");
  let score = 0;
  for (const word of words) {
    if (list.has(word)) score += 1 / (shares.get(word) ?? 1);
    else if (ending?.test(word)) score += ENDING_WEIGHT;
  }
  return score;
}

function letterScore(text: string, { letters = "" }: Signs): number {
  return letters === "" ? 0 : LETTER_WEIGHT * countOf(text, new RegExp(`[${letters}]`, "gu"));
}

/** In how many lists each word is: a word of several languages says less. */
function sharesOf(signs: Readonly<Record<string, Signs>>): Map<string, number> {
  const shares = new Map<string, number>();
  for (const { words } of Object.values(signs)) {
    for (const word of words.split(" ")) shares.set(word, (shares.get(word) ?? 0) + 1);
  }
  return shares;
}
