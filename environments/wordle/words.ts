/** Common English words of five letters. A rollout's secret is one of them; a guess may be any five letters. */
const TEXT = `
about above actor admit adopt adult after again agent agree ahead alarm album alert alike alive
allow alone along alter among angel anger angle angry apart apple apply arena argue arise armor
arrow aside asset audio avoid award aware badge baker basic basin basis beach beard beast begin
being below bench berry birth black blade blame blank blast blaze blend bless blind block bloom
board boast bonus boost bound brain brand brass brave bread break breed brick bride brief bring
broad brook broom brown brush build bunch burst cabin cable camel candy canoe cargo carry carve
catch cause cedar chain chair chalk charm chart chase cheap check cheek cheer chess chest chief
child chill choir chord civic claim clamp class clean clear clerk cliff climb clock cloth cloud
clown coach coast cobra cocoa comet coral couch count court cover crack craft crane crash cream
creek crest crime crisp cross crowd crown crust curve cycle daily dairy dance debut decay delay
depth diary diver dizzy donor doubt dozen draft drain drama dream dress drift drill drink drive
eager eagle early earth elbow elder elect elite empty enemy enjoy enter entry equal error essay
event exact exist extra faint fairy faith fancy fault feast fence ferry fever fiber field fight
final flame flash fleet float flock flood floor flour fluid flute focus force forge forty forum
found frame fresh frost fruit giant given glass gleam globe glory glove grace grade grain grand
grape graph grasp grass green greet grief grill group grove guard guess guest guide habit happy
harsh haste hatch haven heart heavy hedge hello hinge hobby honey honor horse hotel house human
humor ideal image index inner input issue ivory jelly jewel joint jolly judge juice knife knock
label labor large laser later laugh layer learn lemon level lever light limit linen local lodge
logic loyal lucky lunar lunch magic major maple march match mayor medal melon mercy merit metal
meter minor mixed model money month moral motor mount mouse mouth movie music naval nerve night
noble noise north novel nurse ocean offer olive onion opera orbit order organ other ounce owner
oxide paint panel paper patch pause peace peach pearl pedal penny phase phone piano piece pilot
pinch pitch pivot pizza place plain plane plant plate plaza point polar porch pound power press
price pride prime print prize proof proud pulse punch pupil queen quest quick quiet quilt quote
radar radio raise ranch range rapid razor reach ready realm rebel relax reply rider ridge right
rigid rival river roast robin robot rocky roman rough round route royal rural salad sauce scale
scarf scene scent scope score scout sense serve seven shade shake shape share sharp sheep shelf
shell shift shine shirt shock shore short shout sight skate skill slate sleep slice slope smart
smile smoke snack solar solid solve sound south space spare spark speak spear speed spice spine
split spoon sport spray squad stack staff stage stair stamp stand start state steam steel stick
still stock stone stool storm story stove straw strip study style sugar sunny swamp sweet swift
swing sword table taste teach theme thick thing third thorn three throw thumb tiger title toast
today token tooth topic torch total touch tower trace track trade trail train treat trend trial
tribe trick truck trunk trust truth tulip twist uncle union unity urban usage usual valid value
vapor vault verse video visit vital vivid voice voter wagon waist watch water weave whale wheat
wheel white whole width wings woman world worth wrist write yacht yield young youth zebra
`;

export const WORDS: readonly string[] = TEXT.trim().split(/\s+/);
