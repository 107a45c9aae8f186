-- A small table of documents for demonstrations and tests, written for this project and free under
-- its licence. Rows differ in what makes tokens differ: script, spacing, case, digits, symbols.
CREATE TABLE docs(id INTEGER PRIMARY KEY, lang TEXT, title TEXT, body TEXT);
INSERT INTO docs(id, lang, title, body) VALUES
(1, 'en', 'The ferry',
 'The ferry leaves at seven, and again at nine. Between the two, nobody on the island hurries. The
baker''s shutters go up, the harbour cat chooses a warm rope to sleep on, and someone who isn''t
from here asks whether there''s a later boat. There isn''t; there never was.'),
(2, 'en', 'Instructions for a borrowed house',
 'Water the tomatoes in the evening, not at noon. The key sticks: lift the door, then turn. Don''t
feed the neighbour''s dog, however it looks at you - he''s eaten. If the lights go out, it''s only
the kettle and the oven quarrelling; switch one off and press the red button.'),
(3, 'en', 'SHOUTING, camelCase and friends',
 'WE''LL see. You''re LATE! HTTPServer, parseJSONValue, snake_case_name, kebab-case-name, iPhones,
McDonald, O''Brien, naïve, café, résumé, coöperate. A.B.C. e.g. i.e. etc...'),
(4, 'en', 'A word to the tokenizer',
 'Strawberry, strawberries, unstrawberrylike. Antidisestablishmentarianism is long; zyzzyva is
rare; the is common. Aaaaaaah! Hmmmmmm. Zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz.'),
(5, 'code', 'Counting lines in C',
 '#include <stdio.h>

int main(void) {
    long lines = 0;
    for (int c; (c = getchar()) != EOF;) {
        if (c == ''\n'') lines++;
    }
    printf("%ld\n", lines);
    return 0;
}
'),
(6, 'code', 'A generator in Python',
 'def windows(items, size=3):
    """Yield each run of `size` neighbours."""
    for i in range(len(items) - size + 1):
        yield items[i:i + size]


assert list(windows("abcd")) == ["abc", "bcd"]
'),
(7, 'code', 'Rows per day in SQL',
 'SELECT date(at) AS day, count(*) AS n, sum(CASE WHEN ok THEN 0 ELSE 1 END) AS failed
  FROM visits
 WHERE at >= ''2024-01-01''
 GROUP BY day
HAVING n > 10
 ORDER BY day DESC;'),
(8, 'code', 'Settings in JSON',
 '{"name": "demo", "retries": 3, "ratio": 0.125, "tags": ["a", "b", null], "nested": {"on": true}}'),
(9, 'de', 'Der Schlüssel',
 'Der Schlüssel hängt hinter der Tür, gleich neben der Donaudampfschifffahrtskapitänsmütze. Wer zuletzt
geht, löscht das Licht, schließt ab und wirft ihn durch den Briefschlitz. Fußgänger grüßen, Äpfel liegen
lassen.'),
(10, 'fr', 'Le marché',
 'Au marché, l''été, on n''achète pas : on discute. « Combien les cerises ? » — « Trop cher, mais goûtez-les
d''abord ! » Et l''on repart avec deux kilos, un bouquet d''œillets et l''adresse d''un bon garagiste.'),
(11, 'es', 'La siesta',
 '¿Quién llama a las tres de la tarde? Nadie que nos conozca. El pueblo entero duerme, el perro también,
y hasta el reloj de la plaza camina más despacio. ¡Mañana será otro día!'),
(12, 'ru', 'Первый снег',
 'Ночью выпал первый снег, и утром двор стало не узнать. Дети вышли без шапок, дворник ворчал для вида,
а кошка осторожно трогала лапой белую ступеньку, будто проверяла, надолго ли это.'),
(13, 'el', 'Το καφενείο',
 'Στο καφενείο του λιμανιού ο καφές αργεί πάντα δέκα λεπτά. Κανείς δεν παραπονιέται: όποιος βιάζεται, δεν
ήρθε για τον καφέ.'),
(14, 'ar', 'البئر القديمة',
 'في وسط القرية بئر قديمة لا يشرب منها أحد، لكن الجميع يلتقون حولها عند المساء. يجلس الكبار على الحجارة ويعدّ
الصغار النجوم حتى الرقم ١٢٣.'),
(15, 'he', 'הרכבת',
 'הרכבת האחרונה יוצאת בעשר וחצי. מי שמאחר אותה הולך ברגל, ומי שהולך ברגל רואה את הים.'),
(16, 'hi', 'बारिश का दिन',
 'आज सुबह से बारिश हो रही है। चाय की दुकान पर भीड़ है, पर किसी को जल्दी नहीं। छाता एक है और लोग चार, फिर भी सब
हँस रहे हैं।'),
(17, 'ta', 'மழை',
 'மழை நின்ற பிறகு தெரு முழுவதும் காகிதக் கப்பல்கள். வென்றது யாருடைய கப்பல் என்று யாருக்கும் தெரியாது.'),
(18, 'th', 'ตลาดเช้า',
 'ตลาดเช้าริมคลองเปิดก่อนพระอาทิตย์ขึ้น แม่ค้าพายเรือขายข้าวต้มร้อนๆ และไม่มีใครถามราคา'),
(19, 'ja', '駅前の傘',
 '駅前には、だれのものでもない傘が五本あります。雨の日に一本借りて、晴れたら返す。ただそれだけの約束なのに、
三十年たっても傘は五本のままです。ノートパソコンは貸しません。'),
(20, 'zh', '巷口的面馆',
 '巷口的面馆只有四张桌子,菜单也只有一行字。老板说:“人少,汤就好。”下午两点以后卖完就关门,谁来求情都没有用。'),
(21, 'zh-TW', '夜車',
 '夜車過了山洞,窗外忽然全是海。車廂裡的人都醒了,卻沒有一個人說話。'),
(22, 'ko', '골목의 책방',
 '골목 끝 작은 책방에는 간판이 없습니다. 주인은 책을 팔기보다 읽어 주기를 좋아해서, 손님은 늘 한 쪽만 더 듣고
가겠다고 말합니다.'),
(23, 'vi', 'Quán nước đầu ngõ',
 'Quán nước đầu ngõ mở từ lúc gà gáy. Người già uống trà, người trẻ uống cà phê, còn trẻ con thì uống những
câu chuyện.'),
(24, 'emoji', 'Weather and families',
 'Mon ☀️ 24° 🌡️, Tue 🌧️☔, Wed ⛈️⚡ -> stay in! 👩‍💻👨‍👩‍👧‍👦 say 👍🏽👏🏿, flags: 🇯🇵🇧🇷🇺🇦, done ✅ ❤️‍🔥'),
(25, 'num', 'Numbers of every kind',
 '7 42 365 1024 65536 1000000 3.14159 -273.15 1,234,567.89 0x1F4A9 6.022e23 ½ ² Ⅳ ① ٣ 2024-02-29T23:59:60Z
+49 30 1234567 192.168.0.1 1/3 50% $9.99 €10 ¥1000 12:34:56.789'),
(26, 'space', 'White space',
 'tabs:		two, spaces:          ten, mixed: 	 	 end
four line ends follow



a line of three spaces follows
   
no-break space and ideographic　space; a trailing blank '),
(27, 'special', 'Text that looks like a control token',
 'A page may say <|endoftext|> or <|im_start|>system without being allowed to mean it. Counted as text,
<|endoftext|> is seven tokens, not one.'),
(28, 'url', 'Addresses and hashes',
 'https://example.org/a/b.html?q=caf%C3%A9&page=2#top, user.name+tag@example.com, C:\Temp\new.txt,
../lib/x86_64-linux-gnu, sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'),
(29, 'md', 'A list in Markdown',
 '# Packing

- [x] passport
- [ ] **warm** socks (2×)
- [ ] `charger`

> Weather changes; socks don''t.

| day | km |
|-----|---:|
| 1   | 12 |
| 2   |  9 |
'),
(30, NULL, 'Not written yet', NULL),
(31, 'en', 'Empty', '');
