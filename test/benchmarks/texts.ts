/** Texts for the generated answers, written for them: sentences that are hard to split, and one text in each language. */

export const SENTENCES: readonly [string, ...string[]] = [
  "The boats lie in the harbour and wait for the tide.",
  "Dr. Smith went to Washington on Jan. 5 with Mrs. Jones.",
  "Is it late? No, it is only 5 p.m. now!",
  "He paid $3.50 for it, i.e. more than at 8 a.m. on Monday.",
  'She said "Wait here." and then left the pier.',
  "It costs 1.5 million... or so they say.",
  "J. R. Miller and P. Brown wrote a book about ropes, nets, etc. for sailors.",
  "The U.S. is large. It has many harbours (see Fig. 3).",
  "1. Buy a rope. 2. Tie the boat. 3. Wait.",
  "Look at example.com for more; write to a@b.org today.",
  "What a day! It rained, and nobody came out of the house.",
  "“We leave at dawn,” said the captain. “Be there.”",
  "The ship of Acme Inc. sank near St. Helens in the year 1902.",
  "Really?! Yes.",
  "All of them sail; some row: nobody swims.",
  "No. 7 is the last pier.",
  "It ended in the 19th century. Then the railway came.",
  "We met at 10 o'clock - it was dark - and didn't speak.",
];

/** The ISO 639-1 code and a text. */
export const TEXTS: readonly [readonly [string, string], ...(readonly [string, string])[]] = [
  [
    "en",
    "The boats lie in the harbour and wait for the tide. In the evening the fishermen come home and mend their nets.",
  ],
  [
    "es",
    "Los barcos están en el puerto y esperan la marea. Por la tarde los pescadores vuelven a casa y arreglan sus redes.",
  ],
  [
    "pt",
    "Os barcos estão no porto e esperam pela maré. À tarde os pescadores voltam para casa e consertam as suas redes.",
  ],
  [
    "fr",
    "Les bateaux sont dans le port et attendent la marée. Le soir, les pêcheurs rentrent à la maison et réparent leurs filets.",
  ],
  [
    "de",
    "Die Boote liegen im Hafen und warten auf die Flut. Am Abend kommen die Fischer nach Hause und flicken ihre Netze.",
  ],
  ["it", "Le barche sono nel porto e aspettano la marea. La sera i pescatori tornano a casa e riparano le loro reti."],
  ["pl", "Łodzie stoją w porcie i czekają na przypływ. Wieczorem rybacy wracają do domu i naprawiają swoje sieci."],
  ["vi", "Những chiếc thuyền nằm trong bến cảng và chờ thủy triều. Buổi tối, ngư dân trở về nhà và vá lưới của họ."],
  ["fi", "Veneet ovat satamassa ja odottavat vuorovettä. Illalla kalastajat tulevat kotiin ja korjaavat verkkojaan."],
  ["sw", "Mashua ziko bandarini na zinasubiri maji ya kujaa. Jioni wavuvi wanarudi nyumbani na kutengeneza nyavu zao."],
  ["ru", "Лодки стоят в гавани и ждут прилива. Вечером рыбаки возвращаются домой и чинят свои сети."],
  ["uk", "Човни стоять у гавані й чекають припливу. Увечері рибалки повертаються додому і лагодять свої сіті."],
  ["bg", "Лодките са в пристанището и чакат прилива. Вечерта рибарите се прибират у дома и поправят мрежите си."],
  ["ar", "القوارب راسية في الميناء وتنتظر المد. في المساء يعود الصيادون إلى بيوتهم ويصلحون شباكهم."],
  ["fa", "قایق‌ها در بندر هستند و منتظر مد می‌مانند. عصر ماهیگیران به خانه برمی‌گردند و تورهای خود را تعمیر می‌کنند."],
  [
    "ur",
    "کشتیاں بندرگاہ میں کھڑی ہیں اور جوار کا انتظار کر رہی ہیں۔ شام کو ماہی گیر گھر آتے ہیں اور اپنے جال ٹھیک کرتے ہیں۔",
  ],
  ["hi", "नावें बंदरगाह में खड़ी हैं और ज्वार का इंतज़ार कर रही हैं। शाम को मछुआरे घर आते हैं और अपने जाल ठीक करते हैं।"],
  ["mr", "होड्या बंदरात उभ्या आहेत आणि भरतीची वाट पाहत आहेत. संध्याकाळी मच्छीमार घरी येतात आणि त्यांची जाळी दुरुस्त करतात."],
  ["ne", "डुङ्गाहरू बन्दरगाहमा छन् र ज्वारको प्रतीक्षा गर्दैछन्। साँझ माझीहरू घर फर्कन्छन् र आफ्नो जाल मर्मत गर्छन्।"],
  ["bn", "নৌকাগুলো বন্দরে আছে এবং জোয়ারের অপেক্ষা করছে। সন্ধ্যায় জেলেরা বাড়ি ফিরে তাদের জাল মেরামত করে।"],
  ["ta", "படகுகள் துறைமுகத்தில் நின்று அலைக்காகக் காத்திருக்கின்றன. மாலையில் மீனவர்கள் வீடு திரும்பி வலைகளைச் சரிசெய்கிறார்கள்."],
  ["te", "పడవలు ఓడరేవులో ఉండి పోటు కోసం ఎదురు చూస్తున్నాయి. సాయంత్రం జాలర్లు ఇంటికి వచ్చి తమ వలలను బాగు చేస్తారు."],
  ["kn", "ದೋಣಿಗಳು ಬಂದರಿನಲ್ಲಿ ನಿಂತು ಉಬ್ಬರಕ್ಕಾಗಿ ಕಾಯುತ್ತಿವೆ. ಸಂಜೆ ಮೀನುಗಾರರು ಮನೆಗೆ ಬಂದು ತಮ್ಮ ಬಲೆಗಳನ್ನು ಸರಿಪಡಿಸುತ್ತಾರೆ."],
  ["gu", "હોડીઓ બંદરમાં ઊભી છે અને ભરતીની રાહ જુએ છે. સાંજે માછીમારો ઘરે આવે છે અને તેમની જાળ સમારે છે."],
  ["pa", "ਕਿਸ਼ਤੀਆਂ ਬੰਦਰਗਾਹ ਵਿੱਚ ਖੜ੍ਹੀਆਂ ਹਨ ਅਤੇ ਜਵਾਰ ਦੀ ਉਡੀਕ ਕਰ ਰਹੀਆਂ ਹਨ। ਸ਼ਾਮ ਨੂੰ ਮਛੇਰੇ ਘਰ ਆਉਂਦੇ ਹਨ ਅਤੇ ਆਪਣੇ ਜਾਲ ਠੀਕ ਕਰਦੇ ਹਨ।"],
  ["ml", "വള്ളങ്ങൾ തുറമുഖത്ത് കിടന്ന് വേലിയേറ്റത്തിനായി കാത്തിരിക്കുന്നു. വൈകുന്നേരം മീൻപിടുത്തക്കാർ വീട്ടിലെത്തി വല നന്നാക്കുന്നു."],
  ["ko", "배들은 항구에서 밀물을 기다리고 있다. 저녁이 되면 어부들은 집으로 돌아와 그물을 고친다."],
  ["ja", "船は港で潮を待っている。夕方になると漁師たちは家に帰り、網を直す。"],
  ["th", "เรือจอดอยู่ที่ท่าเรือและรอน้ำขึ้น ตอนเย็นชาวประมงกลับบ้านและซ่อมแหของพวกเขา"],
  ["he", "הסירות עומדות בנמל ומחכות לגאות. בערב הדייגים חוזרים הביתה ומתקנים את הרשתות שלהם."],
];
