/** Answers from competitions and textbooks, and others that are easily mistaken for them. */
export const TEXTBOOK_PAIRS = String.raw`
# textbook
\frac{3\sqrt{3}}{4}\text{ square units} == \frac{3\sqrt3}{4}
144\pi \text{ cubic feet} == 144\pi
13.5 \text{ feet per second} == 13.5
13.5 \text{ ft/s} == 13.5\text{ feet per second}
13.5 \text{ ft/s} != 13.5\text{ ft}
70 \text{ mi/hr} == 70\text{ mph}
3\text{ kg} == 3000\text{ g}
1.5\text{ L} == 1500\text{ mL}
1.5\text{ L} != 1.5\text{ mL}
2\text{ gal} == 8\text{ quarts}
45\text{ min} == \frac34\text{ hr}
45\text{ min} != 45\text{ s}
10\text{ cents} == \$0.10
\$10 == 10\text{ dollars}
\$10.00 == 10
\$10.00 != \$1000
5\text{ units} == 5
6\text{ ways} == 6
4\text{ solutions} == 4
3\text{ people} == 3
7\text{ days} == 1\text{ week}
7\text{ days} != 7\text{ weeks}
2\text{ years} == 24\text{ months}
50^{\circ}\text{C} == 50^\circ\text{C}
50^{\circ}\text{C} != 50\text{ K}
60^\circ == \frac{\pi}{3}\text{ radians}
x\text{ cm} != x\text{ in}
x\text{ cm} == x
(2x+3)\text{ cm} == 2x+3
\text{cm} != \text{m}
\text{cm} == cm
3\,\mathrm{A} != 3
n\in\mathbb{Z} != n\in\mathbb{Q}
\mathbb{R}^+ != \mathbb{R}^-
\mathbb{R}\setminus\mathbb{Q} != \mathbb{Q}
\mathbb{R}\setminus\mathbb{Q} == \mathbb R \setminus \mathbb Q
\{x\in\mathbb{R}: x\ge 1\} == [1,\infty)
\{x\in\mathbb{Z}: x\ge 1\} != [1,\infty)
8\text{ A.M.} != 8\text{ P.M.}
8\text{ A.M.} == 8\text{ a.m.}
8:00\text{ a.m.} == 8\text{ AM}
8:00 AM == 8:00 am
8:00 AM != 8
8:00 AM != 8:10 AM
3\text{ billion} != 3\text{ million}
3\text{ billion} == 3\times10^9
\text{Three million} == 3{,}000{,}000
0.5\text{ million} == 500000
\text{fifteen} != 50
\text{fifteen} == 15
\text{seventy five} == 75
\text{zero} == 0
\text{none} != 1
\text{Increasing} == increasing
\text{increasing} != \text{decreasing}
\text{convergent} != \text{divergent}
\text{Convergent} == \text{convergent}
\text{A or B} != \text{A}
\text{A, B, and D} == \text{A, B, D}
A,B,D == \{A,B,D\}
AB != BA
\text{I and II} == \text{I, II}
\text{I and II} != \text{I and III}
\text{II} != \text{III}
II != III
\text{II only} == \text{II only}
\text{II only} != \text{II}
\overline{ABC} != ABC
\overline{ABC} == \overline{ABC}
\overline{z}+1 != z+1
\bar{x}=5 != x=5
\bar{x}=5 == 5
\overline{3.14} != 3.14
3.\overline{142857} == \frac{22}{7}
0.8\overline{3} == \frac56
0.8\overline{3} != 0.83
0.\overline{9} == 1
2.\dot{3} == 2.\dot{3}
\log(2x) != 2\log x
\sin(2x) != 2\sin(x)
f(x)=x^2+2x == x(x+2)
f(x+h) != f(x)+h
f(x+h) != f(x)+f(h)
f(x)g(x) != f(g(x))
f(2)=3 != f(3)=2
f(2)=3 == 3
f(2)+f(3) != f(5)
a(n) != an
t(t-1) == t^2-t
m(m+1)(m+2) == m^3+3m^2+2m
r(1-r) == r-r^2
p(1-p) == (1-p)p
k(k+1)/2 == \frac{k^2+k}{2}
\theta(1+\theta) == \theta+\theta^2
(x,y,z)=(1,-1,2) == (1,-1,2)
x=1,y=-1,z=2 == (x,y,z)=(1,-1,2)
x=1,y=-1,z=2 != (x,y,z)=(1,2,-1)
(x,y)\in\{(1,2),(2,1)\} == \{(1,2),(2,1)\}
(x,y)=(1,2),(2,1) == (1,2),(2,1)
(x,y)=(1,2)\text{ or }(2,1) == \{(1,2),(2,1)\}
(1,2)\text{ and }(2,1) == (2,1),(1,2)
(1,2)\text{ and }(2,1) != (1,2)
M=\begin{bmatrix}1&2\\3&4\end{bmatrix} == \begin{pmatrix}1&2\\3&4\end{pmatrix}
M=\begin{bmatrix}1&2\\3&4\end{bmatrix} != N=\begin{pmatrix}1&2\\3&4\end{pmatrix}
\left(\begin{matrix}1\\2\end{matrix}\right) == \begin{pmatrix}1\\2\end{pmatrix}
\left[\begin{smallmatrix}1&2\end{smallmatrix}\right] == \begin{pmatrix}1&2\end{pmatrix}
y'=2x == 2x
f'(x)=2x, f''(x)=2 == f'(x)=2x, f''(x)=2
\frac{d}{dx}f(x)=2x == 2x
\frac{d^2y}{dx^2}=6x == 6x
\int x\,dx=\frac{x^2}{2}+C == \frac{x^2}{2}+C
S=\frac{1}{1-r}=2 == 2
x=\frac{-b\pm\sqrt{b^2-4ac}}{2a} == \frac{-b\pm\sqrt{b^2-4ac}}{2a}
x=\frac{-(-4)\pm\sqrt{16-8}}{2}=2\pm\sqrt2 == 2\pm\sqrt2
\sqrt{50}=5\sqrt2\approx7.07 == 5\sqrt2
\sqrt{50}=5\sqrt2\approx7.07 == 7.07
\sqrt{50}=5\sqrt2\approx7.07 != 7.1
\sqrt{50}\approx 8 != 8
\approx 0.69 == 0.69
x\approx1.41, y\approx2.24 == (1.41, 2.24)
-2<x\le 3 == (-2,3]
x\in(-2,3] == -2<x\le3
x\geq-2\text{ and }x\leq3 == [-2,3]
-2\le x, x\le 3 == [-2,3]
-2\le x, x\le 3 != (-2,3)
x\in(-\infty,-2]\cup[3,\infty) == x\le-2\text{ or }x\ge3
x\in(-\infty,-2]\cup[3,\infty) == x\leq -2, x \geq 3
x<0\text{ or }x>0 == x\ne0
(-\infty,0)\cup(0,\infty) == \mathbb{R}\setminus\{0\}
\mathbb R-\{0\} == \mathbb{R}\setminus\{0\}
x\in\mathbb{R}, x\neq0 == (-\infty,0)\cup(0,\infty)
\text{all real numbers except }0 == \text{all real numbers except }0
k<-1 == (-\infty,-1)
0<a<1 == a\in(0,1)
a\in(0,1) == (0,1)
y\le 4 == (-\infty,4]
{x^2\over 2} == \frac{x^2}{2}
{\pi \over 4} == \frac{\pi}{4}
{-1\over 2} == -\frac12
x={1\over2} == 0.5
60 km == 60\text{ km}
60 km == 60
12 cm^2 == 12
5 ft 6 in == 66\text{ in}
2.54 cm == 1\text{ in}
90 mph == 90
3 hours == 180 minutes
$5 per hour == 5
1,024 == 1024
\{1,024,2,048\} == \{1024,2048\}
[1,000, 2,000] == [1000,2000]
1,024 != 1,025
(3,141) != 3141
(3,141) == (3, 141)
12,345,678 == 12345678
100,000,000 == 10^8
1,2,3 == \{1,2,3\}
x=\pm 1,\pm 2 == -2,-1,1,2
\{\pm1,\pm2\} == \{-2,-1,1,2\}
\pm\sqrt2 == -\sqrt2,\sqrt2
\pm i == i, -i
2:1 == 2
1:\sqrt2 == \frac{1}{\sqrt2}
1:2:3 != 1:3:2
x:y:z=1:2:3 == 1:2:3
\text{ratio } 1:2 == \text{ratio }1:2
£20 != €20
£20 == 20
€1.50 == 1.50\text{ euros}
\text{March 3} != \text{March 13}
\text{Monday, March 3} != \text{Tuesday, March 3}
\triangle ABC\sim\triangle DEF != \triangle ABC\cong\triangle DEF
\triangle ABC \cong \triangle DEF == \triangle ABC\cong\triangle DEF
AB \parallel CD != AB\perp CD
x\to\infty != x\to0
x\equiv1\pmod2 != x\equiv0\pmod2
p\Rightarrow q != q\Rightarrow p
\exists x != \forall x
\text{x = 1 or x = 2} == x=1,2
\text{x = 1 or x = 2} == \{1,2\}
5\text{.} == 5
x^{0.5} == \sqrt{x}
x₁+x₂ == x_1+x_2
√2/2 == \frac{\sqrt2}{2}
2×10³ == 2000
10⁻³ == 0.001
x²+3x⁵ == x^2+3x^5
\frac{\text{opposite}}{\text{hypotenuse}} == \frac{\text{opposite}}{\text{hypotenuse}}
\{(x,y)\mid x+y=1\} == \{(x,y) : x+y=1\}
\{(x,y)\mid x+y=1\} != \{(x,y)\mid x+y=2\}
3.0 \times 10^8 m/s == 3\times10^8
9.8 m/s² == 9.8
25 °C == 25
25°C == 25^\circ\text{C}
25°C != 25°F
\frac{\pi}{2}\text{ rad} == 90^\circ
6.022 \times 10^{23} \text{ mol}^{-1} == 6.022\times10^{23}
a\cdot b == ab
\text{Yes, because } x>0 == \text{yes, because }x>0
2\text{ and }-3 == -3,2
x+y+z=1 == z+y+x = 1
\frac{x}{3}+\frac{y}{4}=1 == 4x+3y=12
4x+3y-12=0 == y=-\frac43x+4
(x-1)^2+(y+2)^2=9 == x^2+y^2-2x+4y-4=0
(x-1)^2+(y+2)^2=9 != (x+1)^2+(y-2)^2=9
y=\sqrt{x} == \sqrt{x}
\sin x=\frac12 == \sin(x)=0.5
3x^2y == 3yx^2
\frac{2x}{x^2-1} == \frac{1}{x-1}+\frac{1}{x+1}
\frac{2^{n+1}-2}{3} == \frac{2(2^n-1)}{3}
\frac{1-r^{n+1}}{1-r} == \frac{r^{n+1}-1}{r-1}
n^2+n == n(n+1)
(-1)^{n+1} == -(-1)^n
(-1)^{n} == (-1)^{n+2}
(-1)^{n} != (-1)^{n+1}
2^{2n} == 4^n
\binom{n}{2}+n == \binom{n+1}{2}
\frac{(2n)!}{2^n n!} == \frac{(2n)!}{n!2^n}
(n+1)! == (n+1)n!
\lfloor \sqrt{10}\rfloor == 3
\max(3,5) == \max(3,5)
a_{n}=2a_{n-1}+1 == a_n=2a_{n-1}+1
F_{n+2}=F_{n+1}+F_n == F_{n+2}=F_n+F_{n+1}
|x|\le 1 == |x| \leq 1
|x-2|<3 == -1<x<5
|x|>2 == (-\infty,-2)\cup(2,\infty)
x^2<4 == x^2 < 4
2x+1>5 == x>2
2x+1>5 == (2,\infty)
-3x\ge 6 == x\le-2
-3x\ge 6 != x\ge-2
|x|<2 != x<2
\sqrt[3]{x} == x^{1/3}
\sqrt{\frac{a}{b}} == \frac{\sqrt{ab}}{b}
\frac{\sqrt{a}}{\sqrt{b}} == \sqrt{\frac ab}
\frac{a}{\sqrt a} == \sqrt a
\sqrt{a^2b} == |a|\sqrt b
\frac{1}{\sqrt{x+1}-\sqrt{x}} == \sqrt{x+1}+\sqrt{x}
\sqrt{8x^3} == 2x\sqrt{2x}
\ln\sqrt{x} == \frac12\ln x
\ln\frac{x}{y} == \ln x-\ln y
\log_a b == \frac{\ln b}{\ln a}
\log_4 x == \frac12\log_2 x
e^{-x} == \frac{1}{e^x}
e^{2\ln x} == x^2
\sinh x == \frac{e^x-e^{-x}}{2}
\cos^2 x == \frac{1+\cos 2x}{2}
\sin x\cos x == \frac12\sin 2x
\sin^4x+\cos^4x == 1-\frac12\sin^2 2x
\tan(x+\frac{\pi}{4}) == \frac{1+\tan x}{1-\tan x}
\sin x+\cos x == \sqrt2\sin(x+\frac\pi4)
\arctan\frac{1}{\sqrt3} == 30^\circ
2\arctan 1 == \frac{\pi}{2}
\tan 22.5^\circ == \sqrt2-1
\sin 18^\circ == \frac{\sqrt5-1}{4}
\cos 36^\circ == \frac{1+\sqrt5}{4}
\sin\frac{\pi}{12} == \frac{\sqrt6-\sqrt2}{4}
|x|\le 3 == [-3,3]
|2x-1|<5 == (-2,3)
|2x-1|<5 != [-2,3]
3<|x-1| == (-\infty,-2)\cup(4,\infty)
5-2x\ge 1 == x\le 2
5-2x\ge 1 == (-\infty,2]
5-2x\ge 1 != [2,\infty)
x<2x-3 != (-\infty,2x-3)
x<2x-3 == (3,\infty)
|x|<-1 != (-1,1)
x^2<4 != (-\infty,4)
\sqrt{x}<2 != (-\infty,4)
1<2x+1\le 5 == (0,2]
|x+y|<2 != |x|<2
n!2^n == 2^n n!
y(|x|+1) == y|x|+y
P(A|B)=\frac12 == 0.5
P(A|B) != P(B|A)
\frac{1}{2}(\sqrt{5}-1) == \frac{\sqrt5-1}{2}
2^{1008} == 4^{504}
k = 2, 3, 5 == \{2,3,5\}
p = 2 \text{ or } p = 3 == p\in\{2,3\}
(1,1,1), (2,2,2) == (2,2,2),(1,1,1)
(x, y) = (0, 0), (1, 1) == \{(0,0),(1,1)\}
f(x) = x, f(x) = -x == f(x)=\pm x
f(x)=cx \text{ for some constant } c == f(x) = cx\text{ for some constant }c
f(n)=n+1 == f(n) = n + 1
f(x)=x+1 == x+1
P(x) = x^2+1 == x^2+1
a_n=3\cdot2^{n-1} == 3\cdot 2^{n-1}
\text{No} == no
\text{Yes} == \text{yes.}
\arccos\frac{1}{3} == \cos^{-1}\left(\frac13\right)
\frac{1}{\pi} == \pi^{-1}
\frac{4}{3}\pi r^3 == \frac{4\pi r^3}{3}
\sqrt[3]{\frac{3V}{4\pi}} == \left(\frac{3V}{4\pi}\right)^{1/3}
T = 2\pi\sqrt{\frac{m}{k}} == 2\pi \sqrt{m/k}
E = mc^2 == mc^2
v=\sqrt{2gh} == \sqrt{2 g h}
\frac{mv^2}{r} == \frac{m v^{2}}{r}
F = \frac{Gm_1m_2}{r^2} == G\frac{m_1 m_2}{r^2}
-\frac{kq^2}{2a} == -\frac{1}{2}\frac{kq^2}{a}
1.6\times10^{-19}\text{ C} == 1.6\times 10^{-19}
3.00\times10^{8}\ \mathrm{m\,s^{-1}} == 3\times10^8 \text{ m/s}
5.0\ \Omega == 5.0\ \Omega
12\text{ V} == 12
0.25\text{ mol/L} == 0.25
72 pounds == 72
$72 == 72
\$72 == 72.00
72 dollars and 50 cents == \$72.50
\$0.75 == 75\text{ cents}
1 hour and 30 minutes == 90 minutes
1.5 hours == 1 hour 30 minutes
3 dozen == 36
36 eggs == 36
25 students == 25
40 miles per hour == 40\text{ mph}
15 cm by 20 cm == 15 cm by 20 cm
2/5 of the cake == 2/5 of the cake
Friday == \text{Friday}
7:30 PM == 7:30\text{ p.m.}
noon == \text{noon}
-5^\circ\text{C} == -5
1/3, 2/3 == \frac13,\frac23
x=1/3\text{ or }x=2/3 == \{1/3,2/3\}
1000000007 == 1{,}000{,}000{,}007
1.23e-4 == 0.000123
10^{-4} == 0.0001
0.1\% == 0.10\%
\left\{-\frac{3}{2}\right\} == \{-1.5\}
\varnothing == \emptyset
\{\} == \emptyset
\phi == \varphi
\text{I, III} == \text{I and III}
x^4-10x^2+1 == x^4 - 10x^2 + 1
x^4-10x^2+1=0 == 10x^2-x^4=1
z=2e^{i\pi/6} == \sqrt3+i
2\operatorname{cis}\frac{\pi}{6} == 2\text{cis}\frac{\pi}{6}
\lambda=2,-3 == -3,2
\mathbf{v}=\begin{pmatrix}1\\0\end{pmatrix} == \begin{pmatrix}1\\0\end{pmatrix}
\vec{v}=(1,0) == (1,0)
3\hat{i}-4\hat{j} == 3\mathbf{i}-4\mathbf{j}
3\mathbf{i}-4\mathbf{j}+0\mathbf{k} == 3\mathbf{i}-4\mathbf{j}
r=3, \theta=\frac{\pi}{4} == (r,\theta)=(3,\pi/4)
A=1,B=-1 == A=1, B=-1
(2,3)\text{ and }(4,5) == (4,5),(2,3)
A(2,3) == A(2,3)
h(t)=-16t^2+64t == -16t^2+64t
D: x\neq 0 == D: x\ne0
2\sqrt{3}:3 == 2:\sqrt3
\frac{a+b}{2}\ge\sqrt{ab} == \frac{a+b}{2}\geq\sqrt{ab}
3x+2y\le 6 == 6\ge 2y+3x
y>2x-1 == 2x-y<1
`;
